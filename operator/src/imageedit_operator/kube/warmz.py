"""A pod's own report of what it has loaded and warmed, by its address."""

from __future__ import annotations

import json

import aiohttp

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_pod import WarmReport
from imageedit_operator.http_reading import read_bounded
from imageedit_operator.kube.parsing import parse_warm_report

PROBES_PORT = 8080
WARMZ_TIMEOUT_S = 2.0
LONGEST_REPORT_BYTES = 256 * 1024


async def ask_warmz(
    http: aiohttp.ClientSession, ip: str, port: int, *, timeout_s: float = WARMZ_TIMEOUT_S
) -> Known[WarmReport] | Unknown:
    """A pod's own report, warm or not (503 carries one too); never raises."""
    host = f"[{ip}]" if ":" in ip else ip
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with http.get(f"http://{host}:{port}/warmz", timeout=timeout, allow_redirects=False) as answer:
            return Known(value=parse_warm_report(json.loads(await read_bounded(answer, LONGEST_REPORT_BYTES))))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unknown(reason="BadAnswer", message=f"/warmz of {ip} is not a warm report: {error!r}")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = str(error) or f"no answer within {timeout_s:g} s"
        return Unknown(reason="Unreachable", message=f"/warmz of {ip} does not answer: {why}")
