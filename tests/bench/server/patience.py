"""Clients as the OpenAI libraries make them: they wait so long, then try again, twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

from imageedit_server.loadtest.asking import EDIT_PATH, Asking
from imageedit_server.loadtest.http import Answer, ConnectionBroken, HttpClient

RETRIES = 2
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
# A longer Retry-After is not believed.
LONGEST_RETRY_AFTER_S = 60.0
RETRIED = (408, 409, 429)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What one user got: when the request was made, when it ended, and whether with a picture."""

    began_s: float
    ended_s: float
    answered: bool
    tries: int


async def wanted(asked: Asking, number: int, chance: random.Random) -> Wanted:
    """One user's request to its end."""
    began_s = time.monotonic()
    http = HttpClient(asked.address)
    try:
        for tries in range(1 + RETRIES):
            headers = {**asked.headers, "x-stainless-retry-count": str(tries)}
            answer = await _tried(http, asked, headers, number)
            if answer is not None and answer.status == 200:
                return Wanted(began_s=began_s, ended_s=time.monotonic(), answered=True, tries=tries + 1)
            if tries < RETRIES and _may_retry(answer):
                await asyncio.sleep(_pause_s(answer, tries, chance))
            else:
                break
        return Wanted(began_s=began_s, ended_s=time.monotonic(), answered=False, tries=tries + 1)
    finally:
        http.close()


async def _tried(http: HttpClient, asked: Asking, headers: Mapping[str, str], number: int) -> Answer | None:
    try:
        async with asyncio.timeout(asked.timeout_s):
            return await http.request("POST", EDIT_PATH, headers=headers, body=asked.body(number))
    except (TimeoutError, ConnectionBroken, OSError):
        return None


def _may_retry(answer: Answer | None) -> bool:
    if answer is None:
        return True
    told = answer.headers.get("x-should-retry")
    return told == "true" if told is not None else answer.status in RETRIED or answer.status >= 500


def _pause_s(answer: Answer | None, tries: int, chance: random.Random) -> float:
    given = "" if answer is None else answer.headers.get("retry-after", "")
    if given.isdecimal() and 0 < int(given) <= LONGEST_RETRY_AFTER_S:
        return float(given)
    return min(FIRST_PAUSE_S * 2.0**tries, LONGEST_PAUSE_S) * (1 - 0.25 * chance.random())
