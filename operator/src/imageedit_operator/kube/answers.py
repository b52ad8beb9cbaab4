"""What the apiserver's answers say: an object, or an error with its reason, its fields and when to come again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from imageedit_operator.errors import ApiError

Manifest: TypeAlias = dict[str, Any]
_MANAGER = re.compile(r'conflict with "([^"]*)"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def decoded(verb: str, path: str, status: int, headers: Mapping[str, str], data: bytes) -> Manifest:
    """The object; ApiError when it says that there is none."""
    try:
        answer = json.loads(data) if data else {}
    except ValueError:
        answer = {"message": data[:200].decode(errors="replace")}
    if not isinstance(answer, dict):
        answer = {"message": "the answer is not an object"}
        status = status if status >= 400 else 502
    if status < 400:
        return answer
    causes = (answer.get("details") or {}).get("causes") or []
    raise ApiError(
        status=status,
        reason=str(answer.get("reason") or f"Http{status}"),
        message=str(answer.get("message") or f"{verb} {path} failed"),
        retry_after_s=_retry_after_s(headers, answer),
        fields=frozenset(str(cause.get("field")) for cause in causes),
        contested=_contested(causes),
    )


def _contested(causes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Fields of an apply that other managers own, and who: `conflict with "kubectl" using apps/v1`."""
    found = [cause for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    named = {str(cause.get("field")): _MANAGER.search(str(cause.get("message"))) for cause in found}
    return {field: "another manager" if match is None else match[1] for field, match in named.items()}


def _retry_after_s(headers: Mapping[str, str], answer: Mapping[str, Any]) -> float:
    details = answer.get("details") or {}
    text = headers.get("Retry-After") or details.get("retryAfterSeconds") or 0
    try:
        return min(300.0, max(0.0, float(text)))
    except ValueError:
        return 0.0  # an HTTP date: our own back-off is good enough
