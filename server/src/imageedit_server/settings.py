"""The server's settings: one frozen value, built by a pure function from arguments and environment.

Nothing else in the package reads the environment.
`docs/reference/pod-contract.md` holds the arguments that the operator gives.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from imageedit_server.errors import SettingsInvalid
from imageedit_server.worker.protocol import EngineSettings, Size

ENVIRONMENT_PREFIX = "IMAGEEDIT_"
DEFAULT_TERMINATION_LOG = "/dev/termination-log"
SIDE_MULTIPLE_PX = 32
MAX_SIDE_PX = 4096
MAX_SIZES = 64
DEFAULT_STEPS_HIGH = 24
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that can be set; see `ARGUMENTS` for the meaning of each."""

    model_name: str
    model_dir: str
    model_revision: str
    revision_hash: str
    device: str
    sizes: tuple[Size, ...]
    steps: int
    queue_hard_limit: int
    max_wait_s: float | None
    dynamic_steps: bool
    jobs_dir: str
    host: str
    port: int
    probe_port: int
    drain_propagation_s: float
    max_body_bytes: int
    max_pixels: int
    log_level: str
    stub_edit_s: float | None
    stub_load_s: float
    namespace: str
    deployment: str
    pod: str
    pod_uid: str = field(repr=False)
    termination_log: str
    max_references: int
    warm_cfg: bool
    warmup_budget_s: float | None
    start_deadline_s: float
    manifest_digest: str
    steps_high: int
    files_dir: str
    files_ttl_s: float
    files_max_count: int
    files_max_bytes: int
    api_keys_file: str
    cors_origins: tuple[str, ...]
    stream_heartbeat_s: float

    def engine(self) -> EngineSettings:
        """The part that the worker process needs."""
        return EngineSettings(
            model_dir=self.model_dir,
            device=self.device,
            sizes=self.sizes,
            steps=self.steps,
            stub_edit_s=self.stub_edit_s,
            stub_load_s=self.stub_load_s,
            max_references=self.max_references,
            warm_cfg=self.warm_cfg,
            warmup_budget_s=self.warmup_budget_s,
            manifest_digest=self.manifest_digest,
            log_level=self.log_level,
            pod=self.pod,
        )


# argument -> (default, help). None as default: must be given.
# An empty help hides the argument: it is for tests about time and load.
ARGUMENTS: dict[str, tuple[str | None, str]] = {
    "model-name": ("image-edit", "model id that the API serves"),
    "model-dir": (None, "folder of the checkpoint, or 'demo' for the one inside the package"),
    "model-revision": ("", "free text, echoed by /warmz and in answers"),
    "revision-hash": ("", "hash in the Deployment's name, echoed by /warmz and in metrics"),
    "device": ("cpu", "npu or cpu"),
    "sizes": (None, "candidate sizes, such as 768x768,768x576; sides are multiples of 32"),
    "steps": ("16", "denoising steps of an edit"),
    "queue-hard-limit": ("50", "most requests that wait; one more gets 429"),
    "max-wait": ("auto", "longest estimated wait in seconds that is accepted; auto: 10 edits at the first size"),
    "dynamic-steps": ("off", "on: up to --steps-high steps while the queue is short, if the client did not choose"),
    "jobs-dir": ("", "folder for /v1/jobs, kept over restarts; without it there are no jobs"),
    "host": ("0.0.0.0", "address to listen on"),
    "port": ("8000", "port of the API"),
    "probe-port": ("8080", "port of probes, metrics and drain"),
    "drain-propagation": ("5", "seconds in which a draining server still accepts"),
    "max-body-bytes": (str(60 * 1024 * 1024), "largest request body in bytes"),
    "max-pixels": ("50000000", "largest picture in pixels, width times height"),
    "max-references": ("1", "most pictures of one edit, its own included; each count is warmed"),
    "warm-cfg": ("off", "on: serve negative prompts, which run the model twice a step; warmed too"),
    "warmup-budget": ("", "seconds after which no further kind of edit is warmed; what is not warmed is refused"),
    "start-deadline": ("1800", "seconds in which a worker must be loaded and warm"),
    "manifest-digest": ("", "digest that the checkpoint must have, sha256:..., as `manifest` and /warmz name it"),
    "steps-high": ("", "steps of quality=high, and most steps of an edit (default 24, or --steps if more)"),
    "files-dir": ("", "folder for response_format=url; empty: no files"),
    "files-ttl": ("3600", "seconds that such a file lives"),
    "files-max-count": ("1000", "most files; the oldest makes room"),
    "files-max-bytes": (str(1024**3), "most bytes of all files together; the oldest makes room"),
    "api-keys-file": ("", "file with one API key a line, read again when it changes; empty: no key is needed"),
    "cors-origins": ("", "origins whose pages may call the API, such as https://a.example,https://b.example, or *"),
    "stream-heartbeat": ("10", "seconds between the signs of life of a stream"),
    "log-level": ("info", "debug, info, warning or error"),
    "stub-edit-seconds": ("", ""),
    "stub-load-seconds": ("0", ""),
}


def settings_from(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Build the settings; an argument wins over its environment variable, that over the default.

    Raises:
        SettingsInvalid: something is missing, unknown or out of range.
    """
    given = _given(arguments, environ)
    settings = Settings(
        model_name=_text(given, "model-name"),
        model_dir=_text(given, "model-dir"),
        model_revision=given["model-revision"],
        revision_hash=given["revision-hash"],
        device=_one_of(given, "device", ("npu", "cpu")),
        sizes=_sizes(given["sizes"]),
        steps=_whole(given, "steps", 2, 200),
        queue_hard_limit=_whole(given, "queue-hard-limit", 0, 10_000),
        max_wait_s=None if given["max-wait"] == "auto" else _seconds(given, "max-wait", 86_400),
        dynamic_steps=_one_of(given, "dynamic-steps", ("off", "on")) == "on",
        jobs_dir=given["jobs-dir"],
        host=_text(given, "host"),
        port=_whole(given, "port", 1, 65_535),
        probe_port=_whole(given, "probe-port", 1, 65_535),
        drain_propagation_s=_seconds(given, "drain-propagation", 600),
        max_body_bytes=_whole(given, "max-body-bytes", 1024, 1024**3),
        max_pixels=_whole(given, "max-pixels", 1024, 250_000_000),
        log_level=_one_of(given, "log-level", ("debug", "info", "warning", "error")),
        stub_edit_s=_seconds(given, "stub-edit-seconds", 3600) if given["stub-edit-seconds"] else None,
        stub_load_s=_seconds(given, "stub-load-seconds", 3600),
        namespace=environ.get("IMAGEEDIT_NAMESPACE", ""),
        deployment=environ.get("IMAGEEDIT_DEPLOYMENT", ""),
        pod=environ.get("IMAGEEDIT_POD", ""),
        pod_uid=environ.get("IMAGEEDIT_POD_UID", ""),
        termination_log=termination_log_path(environ),
        max_references=_whole(given, "max-references", 1, 4),
        warm_cfg=_one_of(given, "warm-cfg", ("off", "on")) == "on",
        warmup_budget_s=_seconds(given, "warmup-budget", 86_400) if given["warmup-budget"] else None,
        start_deadline_s=_seconds(given, "start-deadline", 86_400),
        manifest_digest=_digest(given["manifest-digest"]),
        steps_high=_steps_high(given),
        files_dir=given["files-dir"],
        files_ttl_s=_seconds(given, "files-ttl", 7 * 86_400),
        files_max_count=_whole(given, "files-max-count", 1, 100_000),
        files_max_bytes=_whole(given, "files-max-bytes", 1024, 1024**4),
        api_keys_file=given["api-keys-file"],
        cors_origins=_origins(given["cors-origins"]),
        stream_heartbeat_s=_seconds(given, "stream-heartbeat", 3600),
    )
    if settings.port == settings.probe_port:
        raise SettingsInvalid(
            f"--probe-port {settings.probe_port} is the port of the API too: give them different ports"
        )
    return settings


def termination_log_path(environ: Mapping[str, str]) -> str:
    """Where the reason of a failure goes; known even when the settings are not valid."""
    return environ.get("IMAGEEDIT_TERMINATION_LOG", DEFAULT_TERMINATION_LOG)


def environment_name(argument: str) -> str:
    """`model-dir` -> `IMAGEEDIT_MODEL_DIR`."""
    return ENVIRONMENT_PREFIX + argument.upper().replace("-", "_")


class _Parser(argparse.ArgumentParser):
    """argparse ends the process with code 2 by itself; the contract wants 64 and a reason."""

    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid(f"{message}; --help lists the arguments")


def _given(arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    parser = _Parser(
        prog="imageedit-server",
        description="Serves image edits from one accelerator card."
        " Each argument can also be given as IMAGEEDIT_<ARGUMENT>.",
        allow_abbrev=False,
    )
    for name, (default, text) in ARGUMENTS.items():
        shown = f"{text} (default {default})" if default else text
        parser.add_argument(f"--{name}", metavar="VALUE", help=shown if text else argparse.SUPPRESS)
    parsed: dict[str, str | None] = vars(parser.parse_args(list(arguments)))
    given = {}
    for name, (default, _) in ARGUMENTS.items():
        value = parsed[name.replace("-", "_")]
        if value is None:
            value = _from_environment(name, environ)
        if value is None:
            value = default
        if value is None:
            raise SettingsInvalid(f"--{name} is missing; give it, or set {environment_name(name)}")
        given[name] = value
    return given


def _from_environment(name: str, environ: Mapping[str, str]) -> str | None:
    value = environ.get(environment_name(name))
    # Kubernetes injects <SERVICE>_PORT=tcp://10.0.0.1:80 into pods: a Service "imageedit" hits our name.
    if name == "port" and value is not None and value.startswith("tcp://"):
        return None
    return value


def _text(given: Mapping[str, str], name: str) -> str:
    value = given[name].strip()
    if not value:
        raise SettingsInvalid(f"--{name} is empty; give a text")
    return value


def _one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = given[name]
    if value not in allowed:
        raise SettingsInvalid(f"--{name} {value!r} is not one of {', '.join(allowed)}")
    return value


def _whole(given: Mapping[str, str], name: str, lowest: int, highest: int) -> int:
    try:
        value = int(given[name])
    except ValueError:
        value = lowest - 1
    if not lowest <= value <= highest:
        raise SettingsInvalid(f"--{name} {given[name]!r} is not a whole number from {lowest} to {highest}")
    return value


def _seconds(given: Mapping[str, str], name: str, highest: int) -> float:
    try:
        value = float(given[name])
    except ValueError:
        value = -1.0
    if not 0 <= value <= highest:
        raise SettingsInvalid(f"--{name} {given[name]!r} is not a number of seconds from 0 to {highest}")
    return value


def _digest(text: str) -> str:
    if text and not _DIGEST.fullmatch(text):
        raise SettingsInvalid(f"--manifest-digest {text!r} is not sha256: and 64 hexadecimal digits in lower case")
    return text


def _steps_high(given: Mapping[str, str]) -> int:
    steps = _whole(given, "steps", 2, 200)
    return _whole(given, "steps-high", steps, 200) if given["steps-high"] else max(DEFAULT_STEPS_HIGH, steps)


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise SettingsInvalid(f"--cors-origins: {origin!r} is not an origin; write https://pages.example, or *")
    return origins


def _sizes(text: str) -> tuple[Size, ...]:
    sizes = []
    for part in text.split(","):
        try:
            size = Size.parse(part)
        except ValueError:
            raise SettingsInvalid(f"--sizes {text!r}: {part.strip()!r} is not a size; write 768x768,768x576") from None
        for side_px in (size.width_px, size.height_px):
            if side_px % SIDE_MULTIPLE_PX or not SIDE_MULTIPLE_PX <= side_px <= MAX_SIDE_PX:
                raise SettingsInvalid(
                    f"--sizes {text!r}: side {side_px} of {size} is not a multiple of {SIDE_MULTIPLE_PX}"
                    f" from {SIDE_MULTIPLE_PX} to {MAX_SIDE_PX}"
                )
        if size in sizes:
            raise SettingsInvalid(f"--sizes {text!r}: {size} is there twice; name each size once")
        sizes.append(size)
    if len(sizes) > MAX_SIZES:
        raise SettingsInvalid(f"--sizes has {len(sizes)} sizes; at most {MAX_SIZES} are warmed up")
    return tuple(sizes)
