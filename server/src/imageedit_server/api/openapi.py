"""The OpenAPI document, made of the same model that checks the fields."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from imageedit_server.api.fields import FORM_ONLY_FIELDS, EditFields

Schema = dict[str, Any]

SIZE = r"^(auto|original|[1-9]\d{0,4}x[1-9]\d{0,4})$"
ERRORS = {
    "400": "Something in the request is wrong, and stays wrong when sent again.",
    "401": "No API key, or an unknown one.",
    "404": "Another model than the served one, or no such path.",
    "405": "Another method than this page names.",
    "408": "The body came too slowly.",
    "409": "The request contradicts one that came before.",
    "413": "The body is too large.",
    "429": "No place in the queue, or no hope to be in time; see Retry-After.",
    "500": "The edit failed.",
    "503": "Loading, draining, or the worker was lost; see Retry-After.",
}
WITH_RETRY_AFTER = ("429", "503")
# Headers that an edit obeys. Names are free of case.
REQUEST_HEADERS = {
    "idempotency-key": (
        "the same key sent again attaches to the edit that is here",
        {"type": "string", "maxLength": 255},
    ),
    "x-request-id": (
        "comes back with the answer, if it is of up to 128 characters A-Z a-z 0-9 . _ : -",
        {"type": "string"},
    ),
    "x-request-deadline": (
        "when the answer is of no use any more: seconds that are left, seconds since 1970, or 2030-01-31T12:00:00Z",
        {"type": "string"},
    ),
}


def document(*, needs_key: bool, jobs: bool = False, max_images: int = 1) -> Schema:
    """The document; `needs_key` says that API keys are set, `jobs` that jobs are kept; an edit has `max_images`."""
    paths = {
        "/v1/images/edits": {"post": _edits(max_images)},
        "/v1/images/generations": {"post": _generations()},
        "/v1/edit": {"post": _edit(max_images)},
        "/v1/models": {"get": _read("List the served model.", _ref("ModelList"))},
        "/v1/models/{model}": {"get": _read("The served model.", _ref("Model"), "model")},
        "/v1/files/{name}": {"get": _file()},
        "/openapi.json": {"get": _read("This document.", {"type": "object"})},
    }
    if jobs:
        paths |= _jobs(max_images)
    made: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "imageedit-server", "version": _version(), "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {"schemas": _schemas(), "responses": _error_responses()},
    }
    if needs_key:
        made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}]
    return made


def fields_schema(*, leave_out: tuple[str, ...] = ()) -> Schema:
    """The fields of an edit but its pictures. `null` is for JSON alone, and means the same as leaving a field out."""
    schema = EditFields.model_json_schema()
    properties = {name: node for name, node in schema["properties"].items() if name not in leave_out}
    properties["size"] = {**properties["size"], "anyOf": [{"type": "string", "pattern": SIZE}, {"type": "null"}]}
    properties["prompt"] = {**properties["prompt"], "minLength": 1, "maxLength": 4000, "pattern": r"\S"}
    for node in properties.values():
        node.pop("title", None)
        node.pop("default", None)
    return {"type": "object", "additionalProperties": False, "required": ["prompt"], "properties": properties}


def _edits(max_images: int) -> Schema:
    schema = fields_schema()
    for node in schema["properties"].values():
        _without_null(node)
    file = {"type": "string", "format": "binary"}
    schema["properties"] |= {
        "image": {
            "type": "array",
            "items": file,
            "minItems": 1,
            "maxItems": max_images,
            "description": "the picture, then what to look at",
        },
        "mask": {**file, "description": "PNG of the first picture's size, transparent where to edit"},
    }
    schema["required"] = ["image", "prompt"]
    return _operation("Edit a picture.", {"multipart/form-data": {"schema": schema}}, _images_answer())


def _generations() -> Schema:
    content = {"application/json": {"schema": fields_schema(leave_out=("mask_feather",))}}
    return _operation("Make a picture from text, where the model can.", content, _images_answer())


def _edit(max_images: int) -> Schema:
    schema = fields_schema(leave_out=FORM_ONLY_FIELDS)
    text = {
        "type": "string",
        "format": "byte",
        "minLength": 1,
        "description": "base64 of a file, with or without data:...;base64,",
    }
    several = {"type": "array", "items": text, "minItems": 1, "maxItems": max_images}
    schema["properties"] |= {"image": {"anyOf": [text, several]}, "mask": {"anyOf": [text, {"type": "null"}]}}
    schema["required"] = ["image", "prompt"]
    answer = {"200": _answer("The result.", {"application/json": {"schema": _ref("Edited")}})}
    return _operation("Edit a picture: base64 in, base64 out.", {"application/json": {"schema": schema}}, answer)


def _jobs(max_images: int) -> Schema:
    submit, state = _edit(max_images), _ref("Job")
    submit["summary"] = "Leave an edit, to be fetched later; the body is that of POST /v1/edit."
    del submit["responses"]["200"]
    submit["responses"]["202"] = _answer("The job.", {"application/json": {"schema": state}})
    result = _read("What POST /v1/edit would have answered.", _ref("Edited"), "job")
    result["responses"]["409"] = {"$ref": "#/components/responses/409"}
    return {
        "/v1/jobs": {"post": submit},
        "/v1/jobs/{job}": {
            "get": _read("Where the job stands.", state, "job"),
            "delete": _read("Cancel the job, or forget one that has ended.", {"type": "object"}, "job"),
        },
        "/v1/jobs/{job}/result": {"get": result},
    }


def _images_answer() -> Schema:
    content = {
        "application/json": {"schema": _ref("Images")},
        "text/event-stream": {"schema": {"description": "with stream=true: an event for each picture"}},
    }
    return {"200": _answer("The results.", content)}


def _operation(summary: str, content: Schema, answer: Schema) -> Schema:
    errors = {status: {"$ref": f"#/components/responses/{status}"} for status in ERRORS}
    headers = [
        {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
        for name, (text, schema) in REQUEST_HEADERS.items()
    ]
    body = {"required": True, "content": content}
    return {"summary": summary, "parameters": headers, "requestBody": body, "responses": answer | errors}


def _answer(description: str, content: Schema) -> Schema:
    return {"description": description, "headers": _headers(), "content": content}


def _headers(*, retry_after: bool = False) -> Schema:
    headers = {"x-request-id": {"required": True, "schema": {"type": "string"}}}
    if retry_after:
        headers["retry-after"] = {"required": True, "schema": {"type": "string", "pattern": r"^\d+$"}}
    return headers


def _read(summary: str, schema: Schema, name: str | None = None) -> Schema:
    answer = {"200": _answer(summary, {"application/json": {"schema": schema}})}
    errors = {status: {"$ref": f"#/components/responses/{status}"} for status in ("401", "404", "405", "500")}
    return {"summary": summary, "parameters": [_in_path(name)] if name else [], "responses": answer | errors}


def _file() -> Schema:
    binary = {"schema": {"type": "string", "format": "binary"}}
    made = _read("A result of response_format=url, until it expires; its name is its key.", {}, "name")
    made["responses"]["200"]["content"] = dict.fromkeys(("image/png", "image/jpeg", "image/webp"), binary)
    made["security"] = []
    return made


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _schemas() -> Schema:
    text, whole = {"type": "string"}, {"type": "integer"}
    facts = {
        "size": text,
        "working_size": text,
        "output_format": text,
        "background": text,
        "quality": text,
        "seed": whole,
        "steps": whole,
        "seconds": {"type": "number"},
        "model": text,
        "revision": text,
        "digest": text,
        "usage": {"type": "object"},
    }
    always = [name for name in facts if name != "quality"]
    datum = {"type": "object", "properties": {"b64_json": text, "url": text, "seed": whole}, "required": ["seed"]}
    error = {"message": text, "type": text, "param": {"type": ["string", "null"]}, "code": text}
    model = {"id": text, "object": {"const": "model"}, "created": whole, "owned_by": text, "digest": text}
    job = {"id": text, "object": {"const": "job"}, "status": text, "progress": whole, "created_at": whole}
    return {
        "Job": _object(job, *job),
        "Images": _object(
            {"created": whole, "data": {"type": "array", "items": datum}, **facts}, "created", "data", *always
        ),
        "Edited": _object({"output": text, **facts}, "output", *always),
        "Error": _object({"error": _object(error, *error)}, "error"),
        "Model": _object(model, *model),
        "ModelList": _object(
            {"object": {"const": "list"}, "data": {"type": "array", "items": _ref("Model")}}, "object", "data"
        ),
    }


def _error_responses() -> Schema:
    return {
        status: _answer(text, {"application/json": {"schema": _ref("Error")}})
        | {"headers": _headers(retry_after=status in WITH_RETRY_AFTER)}
        for status, text in ERRORS.items()
    }


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _without_null(node: Schema) -> None:
    kinds = [kind for kind in node.pop("anyOf", []) if kind.get("type") != "null"]
    for kind in kinds:
        node.update(kind)


def _version() -> str:
    try:
        return version("imageedit-server")
    except PackageNotFoundError:
        return "0"
