"""The edit that a load test asks for again and again, and the first try that says whether it makes sense at all."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from PIL import Image

from imageedit_server.loadtest.http import Address, ConnectionBroken, HttpClient
from imageedit_server.loadtest.outcomes import Outcome, broken, error_code, error_message, outcome

EDIT_PATH = "/v1/edit"


class CannotBegin(Exception):
    """There is nothing to measure; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One edit, as it is sent; only its seed changes, so that no cache can answer."""

    address: Address
    fields: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float

    def body(self, number: int) -> bytes:
        """The body of the request with this number."""
        return b'{"seed":%d,' % number + self.fields


def asking(
    address: Address,
    *,
    picture: bytes,
    prompt: str,
    size: str | None,
    steps: int | None,
    api_key: str | None,
    timeout_s: float,
) -> Asking:
    """Put the edit together."""
    wishes = {"prompt": prompt, "size": size, "steps": steps, "image": base64.b64encode(picture).decode("ascii")}
    fields = json.dumps({name: value for name, value in wishes.items() if value is not None}).encode()
    headers = {
        "content-type": "application/json",
        # What the OpenAI clients say of their patience: the server need not begin what nobody waits for.
        "x-stainless-read-timeout": f"{timeout_s:g}",
    }
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    return Asking(address=address, fields=fields[1:], headers=headers, timeout_s=timeout_s)


def sample_picture(side_px: int = 768) -> bytes:
    """A PNG with gradients and grain, about as hard to pack as a photograph."""
    ramp = Image.linear_gradient("L").resize((side_px, side_px))
    picture = Image.merge(
        "RGB", (ramp, ramp.transpose(Image.Transpose.ROTATE_90), Image.radial_gradient("L").resize(ramp.size))
    )
    grain = Image.effect_noise(picture.size, 12).convert("RGB")
    file = io.BytesIO()
    Image.blend(picture, grain, 0.15).save(file, "PNG")
    return file.getvalue()


async def edit(client: HttpClient, asked: Asking, number: int) -> Outcome:
    """One request and what became of it."""
    started_s = time.monotonic()
    try:
        async with asyncio.timeout(asked.timeout_s):
            answer = await client.request("POST", EDIT_PATH, headers=asked.headers, body=asked.body(number))
    except TimeoutError:
        return broken("timeout", seconds=time.monotonic() - started_s)
    except ConnectionBroken:
        return broken("connection broken", seconds=time.monotonic() - started_s)
    except OSError:
        return broken("not reached", seconds=time.monotonic() - started_s)
    seconds = time.monotonic() - started_s
    return outcome(status=answer.status, headers=answer.headers, body=answer.body, seconds=seconds)


# | the first edit            | what is said                                         |
# | ------------------------- | ---------------------------------------------------- |
# | 200                       | nothing: the sweep begins                            |
# | no connection             | nothing listens there; check address and port        |
# | 401                       | give --api-key-file                                  |
# | 404 and no such route     | this is not an image-edit server                     |
# | 503 not_ready, draining   | wait until /readyz is 200                            |
# | 429 wait_too_long         | give a longer --timeout, or measure it alone         |
# | 429                       | it is busy with others: measure it alone             |
# | other                     | the service's own message                            |
async def check(asked: Asking) -> float:
    """Make one edit and return its seconds.

    Raises:
        CannotBegin: it was not answered with a picture.
    """
    client, where = HttpClient(asked.address), str(asked.address)
    started_s = time.monotonic()
    try:
        async with asyncio.timeout(asked.timeout_s):
            answer = await client.request("POST", EDIT_PATH, headers=asked.headers, body=asked.body(0))
    except TimeoutError:
        raise CannotBegin(f"{where} gave no answer within {asked.timeout_s:g} s; give a longer --timeout.") from None
    except ConnectionBroken as error:
        raise CannotBegin(f"{where} does not speak HTTP as expected ({error}); is it the API's port?") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotBegin(f"{where} cannot be reached ({why}); check host and port of the API.") from error
    finally:
        client.close()
    if answer.status != 200:
        raise CannotBegin(_why(where, answer.status, answer.body))
    return time.monotonic() - started_s


def _why(where: str, status: int, body: bytes) -> str:
    code, message = error_code(body), error_message(body)
    if status == 401:
        return f"{where} wants an API key; put it into a file and give --api-key-file."
    if status == 404 and code in ("", "not_found"):
        return f"{where} has no {EDIT_PATH}; give the address of the API, such as http://host:8000."
    if code in ("not_ready", "draining"):
        return f"{where} is not ready ({message}); wait until /readyz on its probe port is 200."
    if code == "wait_too_long":
        return f"{where} could not answer in time ({message}); give a longer --timeout, or measure it alone."
    if status == 429:
        return f"{where} is busy with others ({message}); measure it while nobody else uses it."
    return f"{where} answered {status}: {message or code or 'no reason given'}"
