"""The doctor's tables, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from imageedit_server.commands.doctor import as_json, as_text, healthy
from imageedit_server.doctor import card_rules, rules
from imageedit_server.doctor.facts import Facts, Folder, ModelFolder, Node, Trial
from imageedit_server.doctor.findings import Finding, Level
from imageedit_server.doctor.versions import KNOWN_PAIRS, base_release, cann_release

GIB = 1024**3
MANAGERS = tuple(Node(path=path, usable=True) for path in ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"))
CARD = Node(path="/dev/davinci3", usable=True)
CLOSED = Node(path="/dev/davinci3", usable=False)


def facts(**others: Any) -> Facts:
    """A card on which all is well, unless told otherwise."""
    return replace(
        Facts(
            device="npu",
            python=(3, 11, 9),
            packages={"torch": "2.9.0", "torch_npu": "2.9.0", "diffusers": "0.42.1", "transformers": "5.24.0"},
            cann="8.5.0",
            driver="25.2.0",
            driver_libraries=True,
            environment={"ASCEND_DOCKER_RUNTIME": "True", "ASCEND_VISIBLE_DEVICES": "3"},
            cards=(CARD,),
            managers=MANAGERS,
            folders=(Folder(path="/tmp", use="uploads", writable=True),),
            host_memory_bytes=64 * GIB,
            trial=Trial(
                device_name="Ascend910B3", memory_free_bytes=60 * GIB, memory_total_bytes=61 * GIB, matmul_s=0.001
            ),
        ),
        **others,
    )


def packages(**versions: str) -> dict[str, str]:
    return {**facts().packages, **versions}


def model(**others: Any) -> ModelFolder:
    return replace(ModelFolder(path="/m", pipeline="P", weights_bytes=54 * GIB, manifest=True), **others)


def check(finding: Finding, level: str, said: str) -> None:
    assert (finding.level.value, said in finding.message) == (level, True), finding


def test_a_card_on_which_all_is_well_gives_only_ok() -> None:
    findings = rules.examine(facts(model=model()))
    assert {finding.level for finding in findings} == {Level.OK}, findings
    assert healthy(findings)


def test_the_processor_is_not_asked_for_driver_and_card() -> None:
    names = [finding.name for finding in rules.examine(facts(device="cpu"))]
    assert names == ["python", "packages", "device", "memory", "folders"]


@pytest.mark.parametrize(
    ("version", "device", "level", "said"),
    [
        ((3, 10, 4), "cpu", "fail", "3.10.4 is too old"),
        ((3, 11, 0), "npu", "ok", "3.11.0"),
        ((3, 13, 9), "npu", "ok", "3.13.9"),
        ((3, 14, 0), "npu", "warn", "up to 3.13"),
        ((3, 14, 0), "cpu", "ok", "3.14.0"),
    ],
)
def test_python(version: tuple[int, int, int], device: str, level: str, said: str) -> None:
    check(rules.python(facts(python=version, device=device)), level, said)


@pytest.mark.parametrize("name", ["torch", "diffusers", "transformers"])
def test_each_library_of_the_engine_must_be_there(name: str) -> None:
    check(rules.packages(facts(packages=packages(**{name: ""}))), "fail", f"{name} missing; install")


@pytest.mark.parametrize(
    ("libraries", "version", "environment", "level", "said"),
    [
        (False, "", {}, "fail", "mount the node's /usr/local/Ascend/driver"),
        (False, "25.2.0", {"ASCEND_DOCKER_RUNTIME": "True"}, "fail", "NODRV"),
        (True, "", {}, "warn", "does not mount /usr/local/Ascend/driver/version.info"),
        (True, "25.2.0", {}, "ok", "25.2.0"),
    ],
)
def test_driver(libraries: bool, version: str, environment: dict[str, str], level: str, said: str) -> None:
    found = facts(driver_libraries=libraries, driver=version, environment=environment)
    check(card_rules.driver(found), level, said)


@pytest.mark.parametrize(("version", "level", "said"), [("", "fail", "args, not command"), ("8.5.0", "ok", "8.5.0")])
def test_cann(version: str, level: str, said: str) -> None:
    check(card_rules.cann(facts(cann=version)), level, said)


@pytest.mark.parametrize(
    ("cards", "managers", "environment", "level", "said"),
    [
        ((), (), {}, "fail", "request a card in the pod's resources (huawei.com"),
        ((), (), {"ASCEND_VISIBLE_DEVICES": "3"}, "fail", "does not run under the ascend runtime"),
        ((), (), {"ASCEND_DOCKER_RUNTIME": "True"}, "fail", "found no ASCEND_VISIBLE_DEVICES"),
        ((CARD,), MANAGERS[:2], {}, "fail", "/dev/hisi_hdc missing beside /dev/davinci3"),
        ((CLOSED,), MANAGERS, {}, "fail", "/dev/davinci3 may not be opened"),
        ((CARD,), MANAGERS, {}, "ok", "/dev/davinci3"),
        ((CARD, replace(CARD, path="/dev/davinci4")), MANAGERS, {}, "warn", "drop privileged"),
    ],
)
def test_cards(
    cards: tuple[Node, ...], managers: tuple[Node, ...], environment: dict[str, str], level: str, said: str
) -> None:
    check(card_rules.cards(facts(cards=cards, managers=managers, environment=environment)), level, said)


@pytest.mark.parametrize(
    ("value", "level", "said"),
    [
        ("npu0", "fail", "is not a list of numbers"),
        ("3", "fail", "points beyond the 1 card(s)"),
        ("0,0", "warn", "remove it"),
    ],
)
def test_a_filter_of_devices_that_does_not_fit_is_named(value: str, level: str, said: str) -> None:
    (finding,) = card_rules.visible_devices(facts(environment={"ASCEND_RT_VISIBLE_DEVICES": value}))
    check(finding, level, said)


@pytest.mark.parametrize("environment", [{}, {"ASCEND_RT_VISIBLE_DEVICES": "0"}])
def test_no_filter_or_that_of_the_only_card_is_fine(environment: dict[str, str]) -> None:
    assert not list(card_rules.visible_devices(facts(environment=environment)))


@pytest.mark.parametrize(
    ("environment", "levels"),
    [
        ({}, []),
        ({"ASCEND_LAUNCH_BLOCKING": "0", "PYTORCH_NPU_ALLOC_CONF": "x"}, []),
        ({"ASCEND_LAUNCH_BLOCKING": "1"}, ["warn"]),
        ({"PYTORCH_NPU_ALLOC_CONF": "x", "PYTORCH_ALLOC_CONF": "x"}, ["fail"]),
    ],
)
def test_settings(environment: dict[str, str], levels: list[str]) -> None:
    assert [finding.level.value for finding in card_rules.settings(facts(environment=environment))] == levels


@pytest.mark.parametrize(
    ("torch", "torch_npu", "level", "said"),
    [
        ("2.9.0", "", "fail", "not installed"),
        ("2.8.0", "2.9.0.post2", "fail", "needs torch 2.9.0, but 2.8.0"),
        ("", "2.9.0", "fail", "but none is installed"),
        ("2.9.0+cpu", "2.9.0.post2+git12", "ok", "2.9.0.post2"),
    ],
)
def test_torch_npu(torch: str, torch_npu: str, level: str, said: str) -> None:
    check(card_rules.torch_npu(facts(packages=packages(torch=torch, torch_npu=torch_npu))), level, said)


@pytest.mark.parametrize(
    ("cann", "torch_npu", "level", "said"),
    [
        ("", "2.9.0", "warn", "cannot be compared"),
        ("8.5.0", "", "warn", "cannot be compared"),
        ("7.0.0", "2.9.0", "warn", "7.0.0 is not known here"),
        ("8.5.0", "2.5.1", "warn", "tested with torch_npu 2.9.0 or"),
        ("8.5.0", "2.9.0+git1", "ok", "CANN 8.5.0 and torch_npu 2.9.0"),
        ("8.3.rc1", "2.7.1", "ok", "CANN 8.3.RC1"),
    ],
)
def test_release_pair(cann: str, torch_npu: str, level: str, said: str) -> None:
    check(card_rules.release_pair(facts(cann=cann, packages=packages(torch_npu=torch_npu))), level, said)


@pytest.mark.parametrize(
    ("trial", "level", "said"),
    [
        (Trial(error="no card"), "fail", "no card"),
        (Trial(), "fail", "no answer"),
        (Trial(matmul_s=0.0021, device_name="X"), "ok", "X: a matrix product on npu took 2.1 ms"),
    ],
)
def test_device(trial: Trial, level: str, said: str) -> None:
    check(rules.device(facts(trial=trial)), level, said)


@pytest.mark.parametrize(
    ("free_gib", "weights_gib", "level", "said"),
    [
        (60, 0, "ok", "60.0 GiB free on the card"),
        (30, 54, "fail", "the weights take 54.0 GiB"),
        (55, 54, "warn", "leave little for an edit"),
        (60, 54, "ok", "60.0 GiB"),
    ],
)
def test_memory_of_a_card(free_gib: int, weights_gib: int, level: str, said: str) -> None:
    trial = Trial(memory_free_bytes=free_gib * GIB, memory_total_bytes=64 * GIB)
    check(rules.memory(facts(trial=trial, model=model(weights_bytes=weights_gib * GIB))), level, said)


@pytest.mark.parametrize(("memory_gib", "level"), [(107, "fail"), (109, "warn"), (112, "ok")])
def test_weights_take_twice_their_room_on_the_processor(memory_gib: int, level: str) -> None:
    found = facts(device="cpu", host_memory_bytes=memory_gib * GIB, trial=Trial(), model=model())
    check(rules.memory(found), level, "for this container")


def test_each_folder_that_cannot_be_written_has_its_line() -> None:
    good, bad = Folder(path="/tmp", use="uploads", writable=True), Folder(path="/h", use="logs", writable=False)
    (finding,) = rules.folders(facts(folders=(good, bad)))
    check(finding, "fail", "/h cannot be written (logs); mount an emptyDir")


@pytest.mark.parametrize(
    ("folder", "level", "said"),
    [
        (model(error="vae is missing"), "fail", "vae is missing"),
        (model(manifest=False), "warn", "imageedit-server manifest /m"),
        (model(), "ok", "with a manifest"),
        (model(manifest=False, bundled=True), "ok", "P with 54.00 GiB"),
    ],
)
def test_model(folder: ModelFolder, level: str, said: str) -> None:
    check(rules.model(facts(model=folder)), level, said)


@pytest.mark.parametrize(
    ("text", "release"),
    [("8.3.rc1", "8.3.RC1"), ("8.3.RC1.alpha002", "8.3.RC1"), ("9.0.0", "9.0.0"), ("8.5.0.B100", "8.5.0"), ("x", "")],
)
def test_a_release_of_cann_is_read_in_all_its_spellings(text: str, release: str) -> None:
    assert cann_release(text) == release


def test_every_release_in_the_table_reads_as_itself() -> None:
    assert [cann_release(release) for release in KNOWN_PAIRS] == list(KNOWN_PAIRS)
    assert all(base_release(version).count(".") == 2 for pairs in KNOWN_PAIRS.values() for version in pairs)


def test_a_report_is_healthy_as_long_as_nothing_fails_and_says_so_in_json() -> None:
    fine = Finding(name="python", level=Level.WARN, message="old")
    broken = Finding(name="cards", level=Level.FAIL, message="none")
    assert healthy([fine])
    assert not healthy([fine, broken])
    assert '"ok": false' in as_json([fine, broken])
    assert as_text([fine, broken]) == "warn  python  old\nfail  cards   none"
