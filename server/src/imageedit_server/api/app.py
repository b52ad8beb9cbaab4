"""The API's routes, on the port named `api`. Each reads as: receive, run, answer."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from imageedit_server.api import responses
from imageedit_server.api.answers import add_error_answers
from imageedit_server.api.edits import receive, run
from imageedit_server.api.envelope import Envelope
from imageedit_server.api.files import MEDIA_TYPES
from imageedit_server.api.forms import parts_of
from imageedit_server.api.job_routes import add_job_routes
from imageedit_server.api.jobs import Jobs
from imageedit_server.api.keys import KeyCheck
from imageedit_server.api.limits import Limits
from imageedit_server.api.observed import NO_FRAMEWORK_TELEMETRY
from imageedit_server.api.openapi import document
from imageedit_server.api.page import Page
from imageedit_server.api.pieces import File, PiecesResponse, json_answer
from imageedit_server.api.requests import Reader, from_form, from_generation, from_json
from imageedit_server.api.service import Service
from imageedit_server.api.slices import slices
from imageedit_server.api.streaming import stream
from imageedit_server.api.wishes import EditRequest, unknown_model
from imageedit_server.errors import NotFound

# What a page of another origin may read besides the body.
EXPOSED_HEADERS = ("x-request-id", "retry-after", "x-should-retry")


def api_app(service: Service, jobs: Jobs | None = None) -> ASGIApp:
    """The application of the API: id and counts outermost, then the page, CORS, the keys, and the routes."""
    routes = _routes(service)
    if jobs is not None:
        add_job_routes(routes, service, jobs)
    app: ASGIApp = routes
    if service.api_keys is not None:
        app = KeyCheck(app, service.api_keys, on_refused=service.count_refusal)
    if service.settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=service.settings.cors_origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=EXPOSED_HEADERS,
        )
    if service.settings.page:
        app = Page(app)
    return Envelope(app, service)


def _routes(service: Service) -> FastAPI:
    app = FastAPI(
        title="imageedit-server",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_FRAMEWORK_TELEMETRY,
    )
    add_error_answers(app)
    settings = service.settings

    @app.post("/v1/edit")
    async def post_edit(request: Request) -> Response:
        received = await receive(service, request, from_json)
        edited = await run(service, request, received)
        output = File(data=edited[0].file)
        return await json_answer({"output": output, **responses.facts(service, received, edited)})

    @app.post("/v1/images/edits")
    async def post_images_edits(request: Request) -> Response:
        content_type = request.headers.get("content-type", "")

        def read(body: bytes, limits: Limits) -> EditRequest:
            return from_form(parts_of(body, content_type), limits)

        return await _images(service, request, read, kind="image_edit.completed")

    @app.post("/v1/images/generations")
    async def post_images_generations(request: Request) -> Response:
        return await _images(service, request, from_generation, kind="image_generation.completed")

    @app.get("/v1/files/{name}")
    async def get_file(name: str) -> Response:
        data = None if service.files is None else await asyncio.to_thread(service.files.read, name)
        if data is None:
            raise NotFound("There is no such file, or no longer; ask for the edit again.", code="file_not_found")
        headers = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
        return PiecesResponse(list(slices(data)), media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)

    @app.get("/v1/models")
    async def get_models() -> Response:
        return JSONResponse({"object": "list", "data": [responses.model_body(service)]})

    @app.get("/v1/models/{model_id:path}")
    async def get_model(model_id: str) -> Response:
        if model_id != settings.model_name:
            raise unknown_model(model_id, settings.model_name)
        return JSONResponse(responses.model_body(service))

    @app.get("/openapi.json")
    async def get_openapi() -> Response:
        needs_key, jobs = service.api_keys is not None, bool(settings.jobs_dir)
        return JSONResponse(document(needs_key=needs_key, jobs=jobs, max_images=settings.max_references))

    return app


async def _images(service: Service, request: Request, read: Reader, *, kind: str) -> Response:
    received = await receive(service, request, read)
    if received.wish.stream:
        return await stream(service, request, received, kind=kind)
    edited = await run(service, request, received)
    body = await responses.images_body(service, received, edited, base_address=str(request.base_url))
    return await json_answer(body)
