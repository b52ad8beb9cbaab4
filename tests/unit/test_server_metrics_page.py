"""The pages about metrics and API name what the code has, and the code has what they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import imageedit_server
from imageedit_server.gate.jobs import UNWRITTEN_RESULT
from imageedit_server.gate.refusals import REASONS
from imageedit_server.metric_labels import CODES, ROUTES
from imageedit_server.telemetry import Telemetry

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(imageedit_server.__file__).parent
ROW = re.compile(r"^\| `(imageedit_(?!operator_)\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def telemetry() -> Telemetry:
    made = Telemetry(namespace="ml", deployment="qwen-edit", revision_hash="5c0f", sizes=["128x128"])
    made.model_info.labels("qwen", "a", "sha256:0").set(1)
    return made


def documented() -> dict[str, tuple[str, set[str]]]:
    text = (DOCS / "metrics.md").read_text()
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(text)}


def test_page_and_registry_name_the_same_metrics_with_the_same_types() -> None:
    assert {name: kind for name, (kind, _) in documented().items()} == telemetry().families()


@pytest.mark.parametrize("name", documented())
def test_the_labels_on_the_page_are_those_of_the_series(name: str) -> None:
    identity = {"imageedit_namespace", "imageedit_deployment", "imageedit_revision"}
    suffix = "_count" if documented()[name][0] == "histogram" else ""
    lines = [line for line in telemetry().exposition().decode().splitlines() if line.startswith(name + suffix + "{")]

    assert lines
    for line in lines:
        assert set(re.findall(r'(\w+)="', line)) == identity | documented()[name][1]


def test_known_label_values_start_at_zero() -> None:
    text = telemetry().exposition().decode()

    for route in ROUTES:
        for code in CODES:
            assert re.search(
                rf'^imageedit_requests_total{{code="{code}",.*route="{re.escape(route)}"}} 0\.0$', text, re.M
            )
    for reason in REASONS:
        assert re.search(rf'^imageedit_refused_requests_total{{.*reason="{reason}"}} 0\.0$', text, re.M)


def test_every_error_code_is_on_the_page_of_the_api_and_the_other_way_round() -> None:
    page = (DOCS / "server-api.md").read_text()
    on_page = {
        code
        for row in re.findall(r"^\| [45]\d\d \| ([^|]+) \|", page, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", row)
    }
    modules = [*(SOURCE / "api").glob("*.py"), SOURCE / "gate" / "admission.py", SOURCE / "safety" / "hook.py"]
    source = "\n".join(path.read_text() for path in modules)
    in_code = set(re.findall(r'code="(\w+)"', source)) | set(
        re.findall(r'^    [A-Z_]+ = "(\w+)"$', source, re.MULTILINE)
    )
    in_code |= set(re.findall(r'^    \d+: \(\s*"(\w+)"', source, re.MULTILINE))
    in_code.add(UNWRITTEN_RESULT)

    # Answers of the probe port, which has a page of its own.
    assert on_page == in_code - {"unauthorized", "drain_is_final"} | {UNWRITTEN_RESULT}
