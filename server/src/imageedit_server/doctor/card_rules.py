"""What the facts about an Ascend card and its software mean. Pure; the tables are mirrored by tests."""

from collections.abc import Iterator

from imageedit_server.doctor.facts import Facts, Node
from imageedit_server.doctor.findings import Finding, fail, ok, warn
from imageedit_server.doctor.versions import KNOWN_PAIRS, base_release, cann_release, public_release

_MANAGERS = {"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"}


# | driver libraries | version file | level                                                              |
# | ---------------- | ------------ | ------------------------------------------------------------------ |
# | not mounted      | any          | fail: torch_npu cannot be imported without libascend_hal.so         |
# | mounted          | no           | warn: the Ascend runtime does not mount it, so nothing can be said  |
# | mounted          | yes          | ok                                                                  |
def driver(facts: Facts) -> Finding:
    """The driver of the node, whose libraries are mounted into the container."""
    if not facts.driver_libraries:
        runtime = facts.environment.get("ASCEND_DOCKER_RUNTIME") == "True"
        cure = (
            "ASCEND_RUNTIME_OPTIONS may say NODRV: leave it out"
            if runtime
            else "run the pod under the Ascend runtime (accelerator.runtimeClassName), or mount the node's"
            " /usr/local/Ascend/driver (accelerator.injection: Plugin)"
        )
        return fail("driver", f"no driver libraries under /usr/local/Ascend/driver; {cure}")
    if not facts.driver:
        return warn(
            "driver",
            "version unknown: the Ascend runtime does not mount /usr/local/Ascend/driver/version.info;"
            " look at it on the node: it must be at least as new as the image's CANN asks for",
        )
    return ok("driver", facts.driver)


# | CANN found | level |
# | ---------- | ----- |
# | no         | fail  |
# | yes        | ok    |
def cann(facts: Facts) -> Finding:
    """The toolkit in the image."""
    if not facts.cann:
        return fail(
            "cann",
            "no CANN toolkit found; use an image made from a CANN image, and keep its entrypoint (args, not command),"
            " which sources set_env.sh",
        )
    return ok("cann", facts.cann)


# | cards  | may be opened | managers      | level                                          |
# | ------ | ------------- | ------------- | ---------------------------------------------- |
# | none   |               |               | fail                                           |
# | some   | no            |               | fail: user and group                           |
# | one    | yes           | all there     | ok                                             |
# | one    | yes           | some missing  | fail                                           |
# | more   | yes           | all there     | warn: a privileged pod sees every card         |
def cards(facts: Facts) -> Finding:
    """The device nodes of this container."""
    names = ", ".join(node.path for node in facts.cards)
    if not facts.cards:
        return fail("cards", _no_card(facts))
    closed = [node.path for node in (*facts.cards, *facts.managers) if not node.usable]
    missing = sorted(_MANAGERS - _paths(facts.managers))
    if missing:
        return fail("cards", f"{', '.join(missing)} missing beside {names}; let the device plugin or runtime add them")
    if closed:
        return fail(
            "cards",
            f"{', '.join(closed)} may not be opened; run as a member of the group of these nodes"
            " (supplementalGroups: [1000] for HwHiAiUser), or as root with DAC_OVERRIDE",
        )
    if len(facts.cards) > 1:
        return warn(
            "cards",
            f"{len(facts.cards)} cards are seen ({names}); this server uses the first one."
            " A privileged pod sees every card of the node, those of others too: drop privileged",
        )
    return ok("cards", names)


# | variable                  | value                     | level                                          |
# | ------------------------- | ------------------------- | ---------------------------------------------- |
# | ASCEND_RT_VISIBLE_DEVICES | unset, or 0               | ok (no line)                                    |
# | ASCEND_RT_VISIBLE_DEVICES | not digits and commas     | fail                                           |
# | ASCEND_RT_VISIBLE_DEVICES | an index beyond the cards | fail: indices count inside the container        |
# | ASCEND_RT_VISIBLE_DEVICES | another index             | warn                                           |
def visible_devices(facts: Facts) -> Iterator[Finding]:
    """A filter that is meant for several cards, and often holds the number of the card on the node."""
    name = "ASCEND_RT_VISIBLE_DEVICES"
    value = facts.environment.get(name)
    if value in (None, "0"):
        return
    indices = str(value).split(",")
    if not all(index.isdigit() for index in indices):
        yield fail(name, f"{value!r} is not a list of numbers; remove it: the pod's only card is 0")
    elif facts.cards and max(map(int, indices)) >= len(facts.cards):
        yield fail(
            name,
            f"{value} points beyond the {len(facts.cards)} card(s) here; remove it: indices count from 0 inside the"
            " container, whatever the card is called on the node",
        )
    else:
        yield warn(name, f"{value}: remove it, unless this container really has several cards")


# | variable                                              | level |
# | ----------------------------------------------------- | ----- |
# | ASCEND_LAUNCH_BLOCKING=1                              | warn: for finding faults only, slow |
# | PYTORCH_NPU_ALLOC_CONF and PYTORCH_ALLOC_CONF         | fail: torch_npu ends the process    |
def settings(facts: Facts) -> Iterator[Finding]:
    """Variables that break or slow a server."""
    environment = facts.environment
    if environment.get("ASCEND_LAUNCH_BLOCKING") == "1":
        yield warn("ASCEND_LAUNCH_BLOCKING", "1 makes every operator wait; remove it outside of debugging")
    if environment.get("PYTORCH_NPU_ALLOC_CONF") and environment.get("PYTORCH_ALLOC_CONF"):
        yield fail("PYTORCH_ALLOC_CONF", "set together with PYTORCH_NPU_ALLOC_CONF, which torch_npu refuses; keep one")


# | torch_npu       | torch           | level |
# | --------------- | --------------- | ----- |
# | missing         | any             | fail  |
# | another release | than torch      | fail: undefined symbols at import |
# | same release    |                 | ok    |
def torch_npu(facts: Facts) -> Finding:
    """torch_npu is built for exactly one release of torch."""
    ours, theirs = facts.packages.get("torch_npu", ""), facts.packages.get("torch", "")
    if not ours:
        return fail("torch_npu", "not installed; use an image with torch_npu, or --device cpu")
    if base_release(ours) != base_release(theirs):
        return fail(
            "torch_npu",
            f"{ours} needs torch {base_release(ours)}, but {theirs or 'none'} is installed; install that one",
        )
    return ok("torch_npu", f"{ours} for torch {theirs}")


# | CANN          | torch_npu          | level                               |
# | ------------- | ------------------ | ----------------------------------- |
# | not found     | any                | warn: nothing can be said           |
# | not in table  | any                | warn                                |
# | in the table  | not beside it      | warn, with what is                  |
# | in the table  | beside it          | ok                                  |
def release_pair(facts: Facts) -> Finding:
    """CANN and torch_npu, as their makers tested them together."""
    release, installed = cann_release(facts.cann), public_release(facts.packages.get("torch_npu", ""))
    if not release or not installed:
        return warn("release pair", "CANN and torch_npu cannot be compared; see the lines above")
    fitting = KNOWN_PAIRS.get(release)
    if fitting is None:
        return warn(
            "release pair", f"CANN {release} is not known here; ask Ascend/pytorch's table which torch_npu fits it"
        )
    if installed not in fitting:
        return warn("release pair", f"CANN {release} is tested with torch_npu {' or '.join(fitting)}, not {installed}")
    return ok("release pair", f"CANN {release} and torch_npu {installed}")


def _no_card(facts: Facts) -> str:
    given = facts.environment.get("ASCEND_VISIBLE_DEVICES")
    runtime = facts.environment.get("ASCEND_DOCKER_RUNTIME") == "True"
    if given and not runtime:
        return (
            f"no /dev/davinci*, though the device plugin gave card {given}: the container does not run under the"
            " ascend runtime; set accelerator.runtimeClassName, or make it the node's default"
        )
    if runtime and not given:
        return "no /dev/davinci*: the runtime found no ASCEND_VISIBLE_DEVICES; request a card in the pod's resources"
    return (
        "no /dev/davinci*; request a card in the pod's resources (huawei.com/...) on a node that has the device plugin"
    )


def _paths(nodes: tuple[Node, ...]) -> set[str]:
    return {node.path for node in nodes}
