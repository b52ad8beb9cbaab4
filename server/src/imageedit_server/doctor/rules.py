"""What the facts mean: one finding for each thing that was looked at. Pure; the tables are mirrored by tests."""

from collections.abc import Iterator

from imageedit_server.doctor import card_rules
from imageedit_server.doctor.facts import Facts
from imageedit_server.doctor.findings import Finding, fail, ok, warn

GIB = 1024**3
_PYTHON_FROM, _PYTHON_BELOW = (3, 11), (3, 14)
# Beside the weights: what an edit of one megapixel takes, and the libraries on the card.
_ROOM_FOR_AN_EDIT_BYTES = 3 * GIB


def examine(facts: Facts) -> list[Finding]:
    """Judge everything, in the order in which things depend on each other."""
    findings = [python(facts), packages(facts)]
    if facts.device == "npu":
        findings += [card_rules.driver(facts), card_rules.cann(facts), card_rules.cards(facts)]
        findings += [*card_rules.visible_devices(facts), *card_rules.settings(facts)]
        findings += [card_rules.torch_npu(facts), card_rules.release_pair(facts)]
    findings += [device(facts), memory(facts), *folders(facts)]
    if facts.model is not None:
        findings.append(model(facts))
    return findings


# | Python         | level                             |
# | -------------- | --------------------------------- |
# | below 3.11     | fail                              |
# | 3.11 to 3.13   | ok                                |
# | 3.14 and later | warn with npu (no torch_npu), ok  |
def python(facts: Facts) -> Finding:
    """The interpreter."""
    version = ".".join(map(str, facts.python))
    if facts.python[:2] < _PYTHON_FROM:
        return fail("python", f"{version} is too old; use an image with Python 3.11")
    if facts.device == "npu" and facts.python[:2] >= _PYTHON_BELOW:
        return warn("python", f"{version}: torch_npu is published for Python up to 3.13; use an image with Python 3.11")
    return ok("python", version)


# | torch, diffusers, transformers | level |
# | ------------------------------ | ----- |
# | one is missing                 | fail  |
# | all are there                  | ok    |
def packages(facts: Facts) -> Finding:
    """The libraries of the engine."""
    missing = [name for name in ("torch", "diffusers", "transformers") if not facts.packages.get(name)]
    if missing:
        return fail("packages", f"{' and '.join(missing)} missing; install imageedit-server[engine]")
    return ok("packages", ", ".join(f"{name} {version}" for name, version in sorted(facts.packages.items())))


# | trial                 | level |
# | --------------------- | ----- |
# | an error              | fail  |
# | the product was right | ok    |
def device(facts: Facts) -> Finding:
    """A product of two matrices, computed and compared in a process of its own."""
    trial = facts.trial
    if trial.error or trial.matmul_s is None:
        return fail("device", trial.error or "no answer of the trial on the device; look at its output above")
    name = f"{trial.device_name}: " if trial.device_name else ""
    return ok("device", f"{name}a matrix product on {facts.device} took {trial.matmul_s * 1000:.1f} ms")


# | where the weights go | room for the weights | and for an edit | level |
# | -------------------- | -------------------- | --------------- | ----- |
# | unknown size         |                      |                 | ok    |
# | known                | no                   |                 | fail  |
# | known                | yes                  | no              | warn  |
# | known                | yes                  | yes             | ok    |
def memory(facts: Facts) -> Finding:
    """Memory of the card, or of this container for the processor, where weights take twice their room (float32)."""
    on_card = facts.device == "npu" and facts.trial.memory_total_bytes > 0
    free_bytes = facts.trial.memory_free_bytes if on_card else facts.host_memory_bytes
    where = "the card" if on_card else "this container"
    weights_bytes = (facts.model.weights_bytes if facts.model else 0) * (1 if facts.device == "npu" else 2)
    said = f"{free_bytes / GIB:.1f} GiB free on {where}" if on_card else f"{free_bytes / GIB:.1f} GiB for {where}"
    if weights_bytes > free_bytes:
        return fail("memory", f"{said}, but the weights take {weights_bytes / GIB:.1f} GiB; use a larger one")
    if weights_bytes > GIB and weights_bytes + _ROOM_FOR_AN_EDIT_BYTES > free_bytes:
        return warn("memory", f"{said}: the weights take {weights_bytes / GIB:.1f} GiB and leave little for an edit")
    return ok("memory", said)


# | folder       | level |
# | ------------ | ----- |
# | writable     | ok, all in one line |
# | not writable | fail, each with what to mount |
def folders(facts: Facts) -> Iterator[Finding]:
    """Where libraries and compilers write."""
    closed = [folder for folder in facts.folders if not folder.writable]
    for folder in closed:
        yield fail("folders", f"{folder.path} cannot be written ({folder.use}); mount an emptyDir there")
    if not closed:
        yield ok("folders", f"writable: {', '.join(folder.path for folder in facts.folders)}")


# | checkpoint | manifest | level |
# | ---------- | -------- | ----- |
# | unusable   | any      | fail  |
# | whole      | no       | warn  |
# | whole      | yes      | ok    |
# | bundled    | any      | ok    |
def model(facts: Facts) -> Finding:
    """The checkpoint: by names, sizes and headers; hashes are checked when it is loaded."""
    folder = facts.model
    assert folder is not None
    if folder.error:
        return fail("model", folder.error)
    said = f"{folder.pipeline} with {folder.weights_bytes / GIB:.2f} GiB of weights in {folder.path}"
    if folder.bundled:
        return ok("model", said)
    if not folder.manifest:
        return warn("model", f"{said}, without a manifest; write one: imageedit-server manifest {folder.path}")
    return ok("model", f"{said}, with a manifest")
