"""Which releases of CANN and torch_npu are known to work together.

Sources: COMPATIBILITY.en.md in the repository Ascend/pytorch (the pairs that its makers test), and
docs/source/community/versioning_policy.md in vllm-project/vllm-ascend (pairs that a large project runs on).
A pair that is not here may work; nobody has said so.
"""

import re

KNOWN_PAIRS: dict[str, tuple[str, ...]] = {
    "9.1.0": ("2.12.0", "2.11.0", "2.10.0.post4", "2.9.0.post6", "2.7.1.post8"),
    "9.0.1": ("2.10.0.post2",),
    "9.0.0": ("2.10.0", "2.9.0.post2", "2.8.0.post4", "2.7.1.post4"),
    "8.5.1": ("2.9.0", "2.8.0.post1", "2.8.0.post2"),
    "8.5.0": ("2.9.0", "2.8.0.post1", "2.8.0.post2", "2.7.1.post2", "2.6.0.post5"),
    "8.3.RC2": ("2.8.0", "2.7.1.post1"),
    "8.3.RC1": ("2.8.0", "2.7.1", "2.6.0.post3"),
    "8.2.RC1": ("2.6.0", "2.5.1.post1"),
    "8.1.RC1": ("2.5.1",),
}
_RELEASE = re.compile(r"(\d+\.\d+)\.?(\d+|RC\d+)", re.I)


def cann_release(text: str) -> str:
    """Bring `8.3.rc1`, `8.3.RC1.alpha002` or `9.0.0` into the form of the table; empty when there is none in it."""
    found = _RELEASE.match(text.strip())
    return f"{found[1]}.{found[2].upper()}" if found else ""


def base_release(version: str) -> str:
    """`2.9.0.post2+git1a2b` -> `2.9.0`: what torch and torch_npu must have in common."""
    return ".".join(re.split(r"[.+]", version)[:3])


def public_release(version: str) -> str:
    """`2.9.0.post2+git1a2b` -> `2.9.0.post2`."""
    return version.partition("+")[0]
