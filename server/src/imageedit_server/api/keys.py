"""Bearer keys from a mounted file: one a line, `#` begins a comment, read again when the file changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from collections.abc import Callable
from pathlib import Path

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from imageedit_server.api.answers import error_answer
from imageedit_server.errors import ApiError, SettingsInvalid, Unauthorized
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.keys")

# The name of a result file is its own key, so that a browser can show it.
OPEN_PREFIX = "/v1/files/"


class ApiKeys:
    """The keys that open the API.

    Raises:
        SettingsInvalid: the file cannot be read at the start, or holds no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._seen, self._digests = _state(path), _read(path)
        except OSError as error:
            raise SettingsInvalid(f"--api-keys-file {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise SettingsInvalid(f"--api-keys-file {path}: {error}") from error

    def open(self, authorization: str) -> bool:
        """Whether an Authorization header carries one of the keys, in a time that says nothing about them."""
        self._read_again_if_changed()
        scheme, _, key = authorization.partition(" ")
        # Headers come as bytes that stand for themselves, one a character.
        given = _digest(key.strip().encode("latin-1"))
        found = False
        for digest in self._digests:
            found |= hmac.compare_digest(given, digest)
        return found and scheme.lower() == "bearer"

    def _read_again_if_changed(self) -> None:
        """A file that is away or empty for a moment, as while it is replaced, leaves the known keys as they are."""
        # The state first: a change in between is then seen at the next request.
        state = _state(self._path)
        if state == self._seen:
            return
        # Noted before it is read, so that a broken file makes one line and not one for each request.
        self._seen = state
        try:
            self._digests = _read(self._path)
        except (OSError, ValueError) as error:
            log.warning("api_keys_unreadable", extra=fields(path=str(self._path), error=str(error)))
        else:
            log.info("api_keys_read", extra=fields(keys=len(self._digests)))


class KeyCheck:
    """Answers 401 before anything of a request is read."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, *, on_refused: Callable[[ApiError], None] = lambda _: None) -> None:
        self._app = app
        self._keys = keys
        self._on_refused = on_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(OPEN_PREFIX):
            await self._app(scope, receive, send)
            return
        if self._keys.open(HTTPConnection(scope).headers.get("authorization", "")):
            await self._app(scope, receive, send)
            return
        refused = Unauthorized(
            "Send one of this server's API keys as Authorization: Bearer <key>.", code="invalid_api_key"
        )
        self._on_refused(refused)
        await error_answer(refused)(scope, receive, send)


def _read(path: Path) -> tuple[bytes, ...]:
    # Some editors begin a file with a mark that is no part of its first key.
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
    digests = tuple(_digest(line.encode()) for line in lines if line)
    if not digests:
        raise ValueError("it holds no key; write one a line")
    return digests


def _state(path: Path) -> tuple[int, ...] | None:
    """What a change changes; None for a file that is away."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(key: bytes) -> bytes:
    """Of one length for all keys."""
    return hashlib.sha256(key).digest()
