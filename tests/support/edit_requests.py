"""Requests for edits as clients send them, read by what a model takes."""

from __future__ import annotations

import base64
import json

from imageedit_server.api.forms import Part
from imageedit_server.api.limits import Limits
from imageedit_server.api.requests import from_form, from_json
from imageedit_server.api.wishes import EditRequest, Wish
from imageedit_server.errors import ApiError

PICTURE = b"\x89PNG and so on"


def body(**fields: object) -> bytes:
    return json.dumps({"image": base64.b64encode(PICTURE).decode(), "prompt": "make it blue"} | fields).encode()


def form(*more: tuple[str, str | bytes], without: str = "") -> list[Part]:
    given: list[tuple[str, str | bytes]] = [("image", PICTURE), ("prompt", "make it blue"), *more]
    return [
        Part(name=name, data=value if isinstance(value, bytes) else value.encode())
        for name, value in given
        if name != without
    ]


def limits(
    *,
    max_references: int = 1,
    guidance: bool = False,
    negative_prompt: bool = False,
    generate: bool = False,
    files: bool = False,
    edit: bool = True,
    mask_required: bool = False,
) -> Limits:
    return Limits(
        model_name="qwen",
        steps=16,
        steps_high=24,
        max_references=max_references,
        guidance=guidance,
        negative_prompt=negative_prompt,
        generate=generate,
        files=files,
        edit=edit,
        mask_required=mask_required,
    )


ALL = limits(max_references=3, guidance=True, negative_prompt=True, generate=True, files=True)


def json_request(sent: bytes, taken: Limits | None = None) -> EditRequest:
    return from_json(sent, taken or limits())


def form_request(parts: list[Part], taken: Limits | None = None) -> EditRequest:
    return from_form(parts, taken or limits())


def wish(*more: tuple[str, str | bytes], taken: Limits = ALL) -> Wish:
    return form_request(form(*more), taken).wish


def problem(error: ApiError) -> tuple[str, str | None]:
    return error.code, error.param
