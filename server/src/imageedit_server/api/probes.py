"""Probes, drain and metrics, on the port named `probes`: what `docs/reference/pod-contract.md` promises."""

from __future__ import annotations

import hmac

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from imageedit_server.api.answers import add_error_answers
from imageedit_server.api.observed import NO_FRAMEWORK_TELEMETRY
from imageedit_server.api.service import Service
from imageedit_server.errors import Unauthorized
from imageedit_server.telemetry import CONTENT_TYPE
from imageedit_server.worker.phase import WorkerPhase


def probes_app(service: Service) -> FastAPI:
    """The application of the probe port."""
    app = FastAPI(
        title="imageedit-server probes",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_FRAMEWORK_TELEMETRY,
    )
    add_error_answers(app)

    @app.get("/healthz")
    async def get_healthz() -> JSONResponse:
        return JSONResponse(_health(service), status_code=500 if service.worker.phase is WorkerPhase.FAILED else 200)

    @app.get("/readyz")
    async def get_readyz() -> JSONResponse:
        reason = unready_reason(
            draining=service.drain.begun,
            phase=service.worker.phase,
            warm=service.warm,
            safety=service.safety.why_not_ready(),
        )
        return JSONResponse({"ready": reason is None, "reason": reason}, status_code=503 if reason else 200)

    @app.get("/warmz")
    async def get_warmz() -> JSONResponse:
        return JSONResponse(_warmth(service), status_code=200 if service.warm else 503)

    @app.post("/drain")
    async def post_drain(request: Request) -> JSONResponse:
        _check_token(request, service.settings.pod_uid)
        service.drain.begin(why="POST /drain")
        return JSONResponse({"draining": True, "accepting": service.drain.accepting}, status_code=202)

    @app.delete("/drain")
    async def delete_drain(request: Request) -> JSONResponse:
        _check_token(request, service.settings.pod_uid)
        service.drain.undo()
        return JSONResponse({"draining": False, "accepting": service.drain.accepting})

    @app.get("/metrics")
    async def get_metrics() -> Response:
        return Response(service.telemetry.exposition(), media_type=CONTENT_TYPE)

    return app


# | draining | worker  | warm | reason                        |
# | -------- | ------- | ---- | ----------------------------- |
# | yes      | any     | any  | draining                      |
# | no       | not ready | any | worker <phase>               |
# | no       | ready   | no   | what the safety hook waits for, else: the checked edit was not good |
# | no       | ready   | yes  | none: ready                   |
def unready_reason(*, draining: bool, phase: WorkerPhase, warm: bool, safety: str | None = None) -> str | None:
    """Why the pod should get no traffic, or None. The backlog is no reason: every pod would leave at once."""
    if draining:
        return "draining"
    if phase is not WorkerPhase.READY:
        return f"worker {phase.value}"
    return None if warm else safety or "the checked edit was not good"


def token_fits(authorization: str, pod_uid: str) -> bool:
    """Compare the bearer token with the pod's uid in constant time; without a uid the door is open."""
    if not pod_uid:
        return True
    scheme, _, token = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), pod_uid.encode())


def _check_token(request: Request, pod_uid: str) -> None:
    if not token_fits(request.headers.get("authorization", ""), pod_uid):
        raise Unauthorized("The bearer token is not this pod's uid.", code="unauthorized")


def _health(service: Service) -> dict[str, object]:
    return {
        "status": "failed" if service.worker.phase is WorkerPhase.FAILED else "ok",
        "worker": service.worker.phase.value,
        "running": service.load.running,
        "waiting": service.load.waiting,
        "draining": service.drain.begun,
        "safety": service.safety.state(),
    }


def _warmth(service: Service) -> dict[str, object]:
    settings, load, warm, failure = service.settings, service.worker.load, service.worker.warm, service.worker.failure
    return {
        "warm": service.warm,
        "model": settings.model_name,
        "revision": settings.model_revision,
        "revisionHash": settings.revision_hash,
        "digest": load.digest if load else "",
        "instance": service.instance,
        "warmupSeconds": round(service.became_warm_in_s, 3) if warm else 0.0,
        "sizes": {size: round(seconds, 3) for size, seconds in warm.edit_s_by_size.items()} if warm else {},
        "check": {"ok": warm.check_ok, "message": warm.check_message}
        if warm
        else {"ok": False, "message": "not warmed up yet"},
        "draining": service.drain.begun,
        "accepting": service.drain.accepting,
        "running": service.load.running,
        "waiting": service.load.waiting,
        "error": {"reason": failure.reason, "message": failure.message} if failure else None,
    }
