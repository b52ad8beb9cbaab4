"""Refusals of the server, and of the apiserver in front of it, as sentences with an exit code. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imageedit_operator.cli.exits import CommandFailed, Exit, from_api
from imageedit_operator.errors import ApiError

KEY_NEEDED = (
    "The server wants an API key, which cannot pass through the API server of the cluster. Forward a port"
    " (kubectl port-forward svc/NAME 8000:80) and give --url http://127.0.0.1:8000 with --api-key-file."
)


# | who answers    | status                 | exit code | the sentence                                     |
# | the apiserver  | 503                    | NOT_READY | no pod is ready; status tells why                |
# | the apiserver  | else                   | as elsewhere: exits.from_api                                 |
# | the server     | 401, through it        | FAILED    | how to bring the key                             |
# | the server     | 429, 503               | NOT_READY | its own, and when to come back                   |
# | the server     | else                   | FAILED    | its own, and the request's name where it is 5xx  |
# | somebody else  | any                    | FAILED    | that this is no server of ours                   |
def refusal(status: int, headers: Mapping[str, str], body: bytes, *, proxied: bool, picture: str = "") -> CommandFailed:
    """What the user is told of an answer that is not 200; `picture` is the file that was sent."""
    said = _json(body)
    if proxied and said.get("kind") == "Status":
        if status == 503:
            words = "No pod is ready to edit. kubectl imageedit status tells what it waits for."
            return CommandFailed(Exit.NOT_READY, words)
        message, reason = str(said.get("message", "")), str(said.get("reason", ""))
        return from_api(ApiError(status=status, reason=reason, message=message))
    error = said.get("error")
    if not isinstance(error, dict):
        return CommandFailed(
            Exit.FAILED, f"The answer is {status} and not one of an image edit server; is --url right?"
        )
    if status == 401 and proxied:
        return CommandFailed(Exit.FAILED, KEY_NEEDED)
    again_s, name = headers.get("Retry-After", ""), headers.get("x-request-id", "")
    return of_server(error, status=status, again_s=again_s, name=name, picture=picture)


def of_server(
    error: Mapping[str, Any], *, status: int, again_s: str = "", name: str = "", picture: str = ""
) -> CommandFailed:
    """The server's own error object."""
    words = str(error.get("message") or error.get("code") or "The server refused it.").strip()
    words = words if words.endswith((".", "!", "?")) else f"{words}."
    if picture and error.get("param") == "image":
        # The server knows it by the name of its field alone.
        words = picture + words.removeprefix("image") if words.startswith("image ") else f"{picture}: {words}"
    later = status in (429, 503) or error.get("code") in ("worker_lost", "draining", "not_ready", "deadline_missed")
    if later:
        when = f" Try again in {again_s} s." if again_s else " Try again later."
        return CommandFailed(Exit.NOT_READY, words + when)
    report = f" Report it with its request id {name}." if status >= 500 and name else ""
    return CommandFailed(Exit.FAILED, words + report)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
