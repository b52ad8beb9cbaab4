"""A pod's own report of what it has loaded and warmed, by its address."""

from __future__ import annotations

import json
import math
from typing import Any

import aiohttp

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_pod import WarmReport
from imageedit_operator.http_reading import read_bounded

PROBES_PORT = 8080
WARMZ_TIMEOUT_S = 2.0
LONGEST_REPORT_BYTES = 256 * 1024
NO_REPORT = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a body can raise that is something else."""


async def ask_warmz(
    http: aiohttp.ClientSession, ip: str, port: int, *, timeout_s: float = WARMZ_TIMEOUT_S
) -> Known[WarmReport] | Unknown:
    """A pod's own report, warm or not (503 carries one too); never raises."""
    host = f"[{ip}]" if ":" in ip else ip
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with http.get(f"http://{host}:{port}/warmz", timeout=timeout, allow_redirects=False) as answer:
            return Known(value=parse_warm_report(json.loads(await read_bounded(answer, LONGEST_REPORT_BYTES))))
    except NO_REPORT as error:
        return Unknown(reason="BadAnswer", message=f"/warmz of {ip} is not a warm report: {error!r}")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = str(error) or f"no answer within {timeout_s:g} s"
        return Unknown(reason="Unreachable", message=f"/warmz of {ip} does not answer: {why}")


def parse_warm_report(body: Any) -> WarmReport:
    """The body of `/warmz`; raises one of NO_REPORT on anything else."""
    check, error = body["check"] or {}, body["error"] or {}
    return WarmReport(
        warm=_boolean(body["warm"]),
        revision_hash=str(body["revisionHash"]),
        digest=str(body["digest"] or ""),
        instance=str(body["instance"]),
        warmup_s=_seconds(body["warmupSeconds"] or 0.0),
        edit_s_by_size={str(size): _seconds(seconds) for size, seconds in (body["sizes"] or {}).items()},
        check_ok=_boolean(check.get("ok", False)),
        check_message=str(check.get("message") or ""),
        draining=_boolean(body["draining"]),
        accepting=_boolean(body["accepting"]),
        running=int(body["running"]),
        waiting=int(body["waiting"]),
        error_reason=str(error.get("reason") or ""),
        error_message=str(error.get("message") or ""),
    )


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a boolean")
    return value


def _seconds(value: Any) -> float:
    """JSON has no infinity, but Python reads one; the status, in which it would end, is JSON again."""
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{value!r} is no length of time")
    return seconds
