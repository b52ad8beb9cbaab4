"""`kubectl imageedit edit`: send a picture and a prompt to a service of the cluster, write the result."""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import io
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from imageedit_operator.cli import edit_errors, edit_files
from imageedit_operator.cli.documents import as_text
from imageedit_operator.cli.edit_stream import Event, Reader, Standing
from imageedit_operator.cli.edit_ways import Way, straight, through_cluster
from imageedit_operator.cli.exits import CommandFailed, Exit
from imageedit_operator.cli.session import Place
from imageedit_operator.http_reading import read_bounded

CONNECT_TIMEOUT_S = 15.0
LONGEST_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """The result and what made it, as the server says."""

    out: str
    bytes: int
    size: str
    working_size: str
    seed: int | None
    steps: int | None
    seconds: float | None
    """On the card."""
    model: str
    revision: str
    request_id: str


async def run(asked: argparse.Namespace) -> Exit:
    """Write the edited picture. Raises ApiError, CommandFailed."""
    target = edit_files.output(asked.image, asked.out, force=asked.force)
    data = await asyncio.to_thread(edit_files.picture, asked.image)
    async with _way(asked) as way:
        event, request_id = await _edit(way, data, asked.image, form_fields(asked, target.format), asked.timeout)
    picture = _decoded(event)
    await asyncio.to_thread(edit_files.save, target.path, picture)
    made = _made(event, target.path, len(picture), request_id)
    print(as_text(made) if asked.json else _words(made))
    return Exit.DONE


def form_fields(asked: argparse.Namespace, output_format: str) -> dict[str, str]:
    """The fields beside the picture: those that were asked for."""
    wanted = {"prompt": asked.prompt, "size": asked.size, "seed": asked.seed, "steps": asked.steps}
    fields = {name: str(value) for name, value in wanted.items() if value not in (None, "")}
    return {**fields, "output_format": output_format, "stream": "true"}


def _way(asked: argparse.Namespace) -> AbstractAsyncContextManager[Way]:
    if asked.url:
        return straight(asked.url, asked.api_key_file)
    if asked.api_key_file is not None:
        raise CommandFailed(Exit.USAGE, edit_errors.KEY_NEEDED)
    place = Place(kubeconfig=asked.kubeconfig, context=asked.context, namespace=asked.namespace)
    return through_cluster(place, asked.service)


async def _edit(
    way: Way, data: bytes, image: Path, fields: Mapping[str, str], timeout_s: float
) -> tuple[Mapping[str, Any], str]:
    """The last event of the stream, and the request's id."""
    form = aiohttp.FormData(fields)
    form.add_field("image", io.BytesIO(data), filename=image.name, content_type="application/octet-stream")
    # The server refuses at once what it cannot make in this time.
    headers = {"x-request-deadline": f"{timeout_s:g}"}
    timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
    progress = _Progress(f"sends {len(data) / 1e6:.1f} MB")
    try:
        async with way.send(form, headers, timeout) as answer:
            if answer.status != 200:
                body = await _short(answer)
                raise edit_errors.refusal(answer.status, answer.headers, body, proxied=way.proxied, picture=str(image))
            return await _result(answer, progress, str(image)), answer.headers.get("x-request-id", "")
    except TimeoutError as error:
        words = f"There was no picture within {timeout_s:g} s. Try again later, or with a longer --timeout."
        raise CommandFailed(Exit.NOT_READY, words) from error
    except (aiohttp.ClientError, OSError) as error:
        raise CommandFailed(Exit.FAILED, f"The connection failed: {error or 'it was closed'}.") from error
    finally:
        progress.end()


async def _result(answer: aiohttp.ClientResponse, progress: _Progress, picture: str) -> Mapping[str, Any]:
    reader = Reader()
    async for chunk in answer.content.iter_any():
        for found in reader.feed(chunk):
            if isinstance(found, Standing):
                progress.show(found.words())
            elif found.kind == "error":
                name = answer.headers.get("x-request-id", "")
                raise edit_errors.of_server(_error(found), status=200, name=name, picture=picture)
            elif "b64_json" in found.data:
                return found.data
    raise CommandFailed(Exit.FAILED, "The connection ended before the picture was there. Try again.")


def _error(event: Event) -> Mapping[str, Any]:
    error = event.data.get("error")
    return error if isinstance(error, dict) else event.data


async def _short(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await read_bounded(answer, LONGEST_ERROR_BYTES)
    except ValueError:
        return b""


class _Progress:
    """One line on stderr that is written over; nothing where stderr is no terminal."""

    def __init__(self, words: str) -> None:
        self._shown = sys.stderr.isatty()
        self.show(words)

    def show(self, words: str) -> None:
        """In place of what stood there."""
        if self._shown:
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line empty."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _decoded(event: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(event["b64_json"], validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise CommandFailed(Exit.FAILED, "What came is no picture; is it an image edit server?") from error


def _made(event: Mapping[str, Any], path: Path, length: int, request_id: str) -> Made:
    return Made(
        out=str(path),
        bytes=length,
        size=str(event.get("size", "")),
        working_size=str(event.get("working_size", "")),
        seed=event.get("seed"),
        steps=event.get("steps"),
        seconds=event.get("seconds"),
        model=str(event.get("model", "")),
        revision=str(event.get("revision", "")),
        request_id=request_id,
    )


def _words(made: Made) -> str:
    card = "" if made.seconds is None else f", {made.seconds:.3g} s on the card"
    return f"{made.out}: {made.size}, {made.bytes / 1000:.0f} kB, seed {made.seed}, {made.steps} steps{card}"
