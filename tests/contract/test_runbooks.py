"""Every reason that asks for a person has a runbook, and every runbook is of such a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imageedit_operator.core.conditions import REASONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "runbooks.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))

ASK_FOR_NOBODY = frozenset(
    {
        "Serving", "AllPodsServe", "Complete", "Stopped", "Scheduled", "NoCardAsked", "Fresh", "QueueDepth",
        "Starting", "RollingOut", "RollingBack", "Moving", "NoRollout", "ScalingDown", "AsWritten", "ScaledByOthers",
        "CardHandedOver", "NoFault", "AutoscalingOff", "AtMinimum", "AtMaximum", "HoldWindow", "PartialData",
        "NotAsked",
    }
)  # fmt: skip


def test_each_reason_that_asks_for_a_person_has_a_runbook() -> None:
    assert sorted(SECTIONS) == sorted(REASONS - ASK_FOR_NOBODY)


def test_no_reason_is_said_to_ask_for_nobody_that_does_not_exist() -> None:
    assert ASK_FOR_NOBODY <= REASONS


@pytest.mark.parametrize("reason", sorted(SECTIONS))
def test_a_runbook_names_fields_and_metrics_that_their_pages_have(reason: str) -> None:
    spec = (DOCS / "spec" / "imageeditdeployment.md").read_text()
    fields = re.findall(r"`(spec\.[\w.]+\w)", SECTIONS[reason])

    metrics = re.findall(r"`(imageedit_\w+)", SECTIONS[reason])
    documented = re.findall(r"`(imageedit_\w+)", (DOCS / "metrics.md").read_text())

    assert [field for field in fields if f"### `{field}`" not in spec] == []
    assert sorted(set(metrics) - set(documented)) == []
