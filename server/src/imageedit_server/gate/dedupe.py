"""Is this request one that is here already? Pure: the time is an argument.

A client that gave up waiting sends its request again, just when the queue is longest. Such a retry attaches to the
job of its first attempt, whether that waits, runs or has just finished.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class By(Enum):
    """What a request was recognised by; the value is the metric's label."""

    IDEMPOTENCY_KEY = "idempotency_key"
    REQUEST_ID = "request_id"
    CONTENT = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a request says about itself.

    Everything is valid within `scope` alone, a digest of the caller's credentials: nobody attaches to another's job.
    `key` is the Idempotency-Key or the `request_id` of the body, which a client chooses on purpose. `request_id` is
    the header `x-request-id`: proxies put one on everything that a page does, so alone it proves nothing. `content` is
    a digest of all that decides what the card makes: requests with the same one share a result, and each makes its own
    file of it. `request` is a digest of the whole request, mask and kind of file included: a key stands for all of it.
    `retry`: the client says that it has asked before.
    """

    scope: str
    content: str
    request: str = ""
    key: str | None = None
    request_id: str | None = None
    retry: bool = False
    may_retry: bool = False

    @property
    def attachable(self) -> bool:
        """Whether a later request could be recognised as this one."""
        return self.key is not None or self.request_id is not None or self.may_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """It is that job."""

    job_id: str
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """The key belongs to another request."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    job_id: str
    identity: Identity
    result_bytes: int = 0


class Register:
    """The jobs that can be recognised: all that wait or run, and results for `keep_s` within `keep_bytes` together."""

    def __init__(self, *, keep_s: float, keep_bytes: int) -> None:
        self._keep_s = keep_s
        self._keep_bytes = keep_bytes
        self._entries: dict[str, _Entry] = {}
        self._by_name: dict[tuple[str, str, str], str] = {}
        # Oldest first, so that looking for what is too old costs nothing when nothing is.
        self._finished_s: dict[str, float] = {}
        self.kept_bytes = 0
        """Bytes of all results that are kept."""

    def __len__(self) -> int:
        return len(self._entries)

    # | key             | x-request-id    | retry | request    | content    | verdict               |
    # | --------------- | --------------- | ----- | ---------- | ---------- | --------------------- |
    # | of a job        | any             | any   | that job's | that job's | attach, by the key    |
    # | of a job        | any             | any   | other      | any        | conflict              |
    # | new             | any             | any   | any        | any        | a new job             |
    # | none            | of a job        | any   | any        | that job's | attach, by request id |
    # | none            | any other       | yes   | any        | of a job   | attach, by content    |
    # | none            | any other       | no    | any        | any        | a new job             |
    def find(self, identity: Identity) -> Attach | Conflict | None:
        """What job a request is, if it is one."""
        if identity.key is not None:
            entry = self._entry("key", identity.scope, identity.key)
            if entry is not None and not _same_request(entry.identity, identity):
                return Conflict(job_id=entry.job_id)
            return None if entry is None else Attach(job_id=entry.job_id, by=By.IDEMPOTENCY_KEY)
        if identity.request_id is not None:
            entry = self._entry("request_id", identity.scope, identity.request_id)
            if entry is not None and entry.identity.content == identity.content:
                return Attach(job_id=entry.job_id, by=By.REQUEST_ID)
        if identity.retry:
            entry = self._entry("content", identity.scope, identity.content)
            if entry is not None:
                return Attach(job_id=entry.job_id, by=By.CONTENT)
        return None

    def knows(self, *, scope: str, key: str | None, request_id: str | None) -> bool:
        """Whether a key or request id is that of a job, for a request whose body has not been read yet."""
        return (key is not None and self._entry("key", scope, key) is not None) or (
            request_id is not None and self._entry("request_id", scope, request_id) is not None
        )

    def add(self, job_id: str, identity: Identity) -> None:
        """A new job; its names now mean it and none before."""
        self._entries[job_id] = _Entry(job_id=job_id, identity=identity)
        for name in _names(identity):
            self._by_name[name] = job_id

    def finished(self, job_id: str, *, result_bytes: int, now_s: float) -> list[str]:
        """A job has its result; the jobs whose results must go for it are returned. Times never go back."""
        entry = self._entries.get(job_id)
        if entry is None:
            return [job_id]
        if job_id not in self._finished_s:
            self._entries[job_id] = replace(entry, result_bytes=result_bytes)
            self._finished_s[job_id] = now_s
            self.kept_bytes += result_bytes
        return self.expire(now_s)

    def forget(self, job_id: str) -> None:
        """A job that has no result: the next request makes another."""
        entry = self._entries.pop(job_id, None)
        if entry is None:
            return
        self._finished_s.pop(job_id, None)
        self.kept_bytes -= entry.result_bytes
        for name in _names(entry.identity):
            if self._by_name.get(name) == job_id:
                del self._by_name[name]

    def expire(self, now_s: float) -> list[str]:
        """Forget results that are too old, then the oldest until the rest fits; return their jobs."""
        gone = []
        while self._finished_s:
            job_id, finished_s = next(iter(self._finished_s.items()))
            if now_s - finished_s < self._keep_s and self.kept_bytes <= self._keep_bytes:
                break
            self.forget(job_id)
            gone.append(job_id)
        return gone

    def _entry(self, kind: str, scope: str, name: str) -> _Entry | None:
        job_id = self._by_name.get((kind, scope, name))
        return None if job_id is None else self._entries[job_id]


def _same_request(known: Identity, asked: Identity) -> bool:
    return (known.request, known.content) == (asked.request, asked.content)


def _names(identity: Identity) -> Iterable[tuple[str, str, str]]:
    named = {"key": identity.key, "request_id": identity.request_id, "content": identity.content}
    return [(kind, identity.scope, name) for kind, name in named.items() if name is not None]
