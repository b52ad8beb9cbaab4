"""Every error code is either a refusal with a reason that the page names, or no refusal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imageedit_server.api.service import Service
from imageedit_server.errors import ApiError
from imageedit_server.gate.admission import Refusal
from imageedit_server.gate.refusals import BY_CODE, INVALID, NO_REFUSALS, REASONS, reason_of
from imageedit_server.settings import settings_from

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "metrics.md").read_text().split("## Refusals by reason")[1].split("\n## ")[0]
ROWS = {
    reason: (set(re.findall(r"\d+", statuses)), set(re.findall(r"`(\w+)`", codes)))
    for reason, statuses, codes in re.findall(r"^\| `(\w+)` \| ([\d, ]+) \| (.*) \|$", SECTION, re.MULTILINE)
}
# Of the page of the API, which another test holds to the code.
CODES = {
    code: status
    for status, codes in re.findall(r"^\| ([45]\d\d) \| ([^|]+) \|", (DOCS / "server-api.md").read_text(), re.MULTILINE)
    for code in re.findall(r"`(\w+)`", codes)
}


def counted(service: Service) -> dict[str, float]:
    text = service.telemetry.exposition().decode()
    found = re.findall(r'^imageedit_refused_requests_total\{.*reason="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {reason: float(value) for reason, value in found if float(value)}


def test_the_page_has_every_reason_in_its_order() -> None:
    assert tuple(ROWS) == REASONS


@pytest.mark.parametrize("code", CODES)
def test_every_error_is_counted_as_the_page_says(code: str) -> None:
    service = Service(settings_from(["--model-dir", "demo", "--sizes", "64x64"], {}))
    service.count_refusal(ApiError("x", code=code))
    reason = reason_of(code)

    assert counted(service) == ({} if reason is None else {reason: 1.0})
    if reason is None:
        assert f"`{code}`" in SECTION.split("No refusals")[1]
    else:
        statuses, codes = ROWS[reason]
        assert CODES[code] in statuses
        assert code in codes or reason == INVALID


def test_no_code_of_the_table_is_unknown_to_the_api() -> None:
    assert BY_CODE.keys() | NO_REFUSALS <= CODES.keys()


def test_every_refusal_of_the_admission_has_a_reason_of_its_own() -> None:
    assert all(reason_of(refusal.value) == refusal.value for refusal in Refusal)
