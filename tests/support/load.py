"""Load on the OpenAI API of a service, with every request's fate counted by the client.

Retries are off, so that each request has exactly one fate:

| fate | when |
| --- | --- |
| answered | 200 with a picture |
| refused | an error object with a code of REFUSALS, or the connection could not be made: nothing was accepted |
| lost | anything else: the connection broke after the request was sent, a time-out, an accepted edit that failed |

Bounded in clients and in time; `stop` ends it and waits for the requests on their way.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType

import httpx2
import openai

REQUEST_TIMEOUT_S = 120.0
PAUSE_AFTER_REFUSAL_S = 0.5
REFUSALS = frozenset({"queue_full", "wait_too_long", "too_many_uploads", "draining", "not_ready"})
"""Codes of answers that say: not accepted, send it again."""


@dataclass(kw_only=True, slots=True)
class Tally:
    """What became of the requests so far."""

    answered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    revisions: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def refused_total(self) -> int:
        return sum(self.refused.values())

    @property
    def lost_total(self) -> int:
        return sum(self.lost.values())

    def __str__(self) -> str:
        parts = [f"answered {self.answered}", f"refused {self.refused_total}", f"lost {self.lost_total}"]
        for name, counter in (("refused", self.refused), ("lost", self.lost)):
            if counter:
                parts.append(f"{name} by kind {dict(counter)}")
        return ", ".join(parts)


class Load:
    """`clients` loops that each edit the same picture again and again.

    Even clients keep their connection alive (the case that drains get wrong), odd ones
    make a new connection for each request (the case that balances).
    """

    def __init__(self, *, base_url: str, picture: bytes, prompt: str, model: str, clients: int, limit_s: float) -> None:
        self.tally = Tally()
        self._base_url = base_url
        self._picture = picture
        self._prompt = prompt
        self._model = model
        self._clients = clients
        self._limit_s = limit_s
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Load:
        end = time.monotonic() + self._limit_s
        self._tasks = [asyncio.create_task(self._loop(number, end)) for number in range(self._clients)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Send nothing more, and wait for the answers that are due."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def _loop(self, number: int, end: float) -> None:
        limits = httpx2.Limits(max_keepalive_connections=1 if number % 2 == 0 else 0)
        async with httpx2.AsyncClient(limits=limits, timeout=REQUEST_TIMEOUT_S, trust_env=False) as transport:
            client = openai.AsyncOpenAI(
                base_url=self._base_url, api_key="none", max_retries=0, http_client=transport, timeout=REQUEST_TIMEOUT_S
            )
            while not self._stopping.is_set() and time.monotonic() < end:
                if not await self._one(client):
                    await asyncio.sleep(PAUSE_AFTER_REFUSAL_S)

    async def _one(self, client: openai.AsyncOpenAI) -> bool:
        """One request; True when it was answered."""
        started = time.monotonic()
        try:
            answer = await client.images.edit(
                model=self._model, image=("picture.png", self._picture, "image/png"), prompt=self._prompt
            )
        except openai.APIStatusError as error:
            kind = f"{error.status_code} {error.code}"
            (self.tally.refused if error.code in REFUSALS else self.tally.lost)[kind] += 1
            return False
        except openai.APIConnectionError as error:
            cause = error.__cause__
            never_sent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
            (self.tally.refused if never_sent else self.tally.lost)[type(cause).__name__] += 1
            return False
        if not answer.data or not answer.data[0].b64_json:
            self.tally.lost["no picture"] += 1
            return False
        self.tally.answered += 1
        self.tally.seconds.append(time.monotonic() - started)
        self.tally.revisions[str((answer.model_extra or {}).get("revision"))] += 1
        return True
