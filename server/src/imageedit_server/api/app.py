"""The API's routes, on the port named `api`. Each reads as: receive, run, answer."""

from __future__ import annotations

import time

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from imageedit_server.api import requests
from imageedit_server.api.answers import add_error_answers
from imageedit_server.api.edits import Edited, receive, run
from imageedit_server.api.envelope import Envelope
from imageedit_server.api.forms import parts_of
from imageedit_server.api.service import Service


def api_app(service: Service) -> ASGIApp:
    """The application of the API."""
    app = FastAPI(title="imageedit-server", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    add_error_answers(app)
    settings = service.settings

    @app.post("/v1/edit")
    async def post_edit(request: Request) -> JSONResponse:
        received = await receive(service, request, requests.from_json)
        edited = await run(service, request, received)
        return JSONResponse({"output": edited.png_base64, **_facts(service, edited)})

    @app.post("/v1/images/edits")
    async def post_images_edits(request: Request) -> JSONResponse:
        content_type = request.headers.get("content-type", "")

        def read(body: bytes) -> requests.EditRequest:
            return requests.from_form(parts_of(body, content_type), model_name=settings.model_name)

        received = await receive(service, request, read)
        edited = await run(service, request, received)
        return JSONResponse(
            {
                "created": int(time.time()),
                "data": [{"b64_json": edited.png_base64}],
                "output_format": "png",
                **_facts(service, edited),
            }
        )

    @app.get("/v1/models")
    async def get_models() -> JSONResponse:
        return JSONResponse({"object": "list", "data": [_model(service)]})

    @app.get("/v1/models/{model_id:path}")
    async def get_model(model_id: str) -> JSONResponse:
        if model_id != settings.model_name:
            raise requests.unknown_model(model_id, settings.model_name)
        return JSONResponse(_model(service))

    return Envelope(app, service)


def _facts(service: Service, edited: Edited) -> dict[str, object]:
    return {
        "size": str(edited.size),
        "seed": edited.seed,
        "seconds": round(edited.seconds, 3),
        "model": service.settings.model_name,
        "revision": service.settings.model_revision,
    }


def _model(service: Service) -> dict[str, object]:
    settings = service.settings
    return {
        "id": settings.model_name,
        "object": "model",
        "created": service.started_at,
        "owned_by": "imageedit-server",
        "revision": settings.model_revision,
        "sizes": [str(size) for size in settings.sizes],
    }
