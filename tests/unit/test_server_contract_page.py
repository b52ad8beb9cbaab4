"""What `docs/reference/pod-contract.md` says about the server, held against its code."""

from __future__ import annotations

import re
from pathlib import Path

from imageedit_server.arguments import ARGUMENTS
from imageedit_server.errors import EXIT_CODES, FailureReason
from imageedit_server.safety.classifier import ClassifierPhase
from imageedit_server.settings import Settings
from imageedit_server.telemetry import Telemetry
from imageedit_server.worker.phase import WorkerPhase

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "pod-contract.md").read_text()


def rows(pattern: str) -> list[tuple[str, ...]]:
    found = [
        tuple(match) if isinstance(match, tuple) else (match,) for match in re.findall(pattern, PAGE, re.MULTILINE)
    ]
    assert found, pattern
    return found


def test_every_argument_of_the_contract_is_taken() -> None:
    assert {name for (name,) in rows(r"^\| `--([a-z-]+)` \|")} <= ARGUMENTS.keys()


def test_every_variable_of_the_contract_is_a_setting() -> None:
    names = {name.lower() for (name,) in rows(r"^\| `IMAGEEDIT_([A-Z_]+)` \|")}

    assert names <= set(Settings.__dataclass_fields__)


def test_reasons_and_exit_codes_are_those_of_the_contract() -> None:
    on_page = {reason: int(code) for reason, code in rows(r"^\| `(\w+)` \| (\d\d) \|")}

    assert on_page == EXIT_CODES
    assert on_page.keys() == {reason.value for reason in FailureReason}


def test_the_words_of_healthz_are_those_of_the_worker() -> None:
    ((words,),) = rows(r'"worker": "([a-z|]+)"')

    assert words.split("|") == [phase.value for phase in WorkerPhase]


def test_the_words_of_healthz_about_the_classifier_are_its_own() -> None:
    ((words,),) = rows(r'"classifier": "([a-z|]+)"')

    assert words.split("|") == ["off", *(phase.value for phase in ClassifierPhase)]


def test_the_metrics_of_the_contract_exist_with_their_types() -> None:
    families = Telemetry(namespace="", deployment="", revision_hash="", sizes=[]).families()

    for name, kind in rows(r"^\| `(imageedit_\w+)` \| (\w+) \|"):
        assert families[name] == kind
