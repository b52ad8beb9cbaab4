"""The routes of jobs: submit, ask, fetch, cancel."""

from __future__ import annotations

import time

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from imageedit_server.api.body import read_body
from imageedit_server.api.jobs import Jobs, Standing
from imageedit_server.api.pieces import PiecesResponse
from imageedit_server.api.retries import key_of, scope_of
from imageedit_server.api.service import Service
from imageedit_server.api.slices import slices
from imageedit_server.gate.admission import Ask, Refusal
from imageedit_server.gate.jobs import JobState

# A job waits on disk, so neither a full queue nor a long wait is a reason against it.
REFUSING = (Refusal.DRAINING, Refusal.NOT_READY)


def add_job_routes(app: FastAPI, service: Service, jobs: Jobs) -> None:
    """Serve `/v1/jobs` from an application."""

    @app.post("/v1/jobs")
    async def post_job(request: Request) -> Response:
        refused = service.refusal(Ask())
        if refused is not None and refused.reason in REFUSING:
            raise service.refused(refused)
        with service.counting_refusals(), service.uploads.room() as room:
            key = key_of(request.headers)
            with service.stage("receive"):
                body = await read_body(request, room)
            job = await jobs.submit(body, key=None if key is None else f"{scope_of(request.headers)} {key}")
        service.traces.note("imageedit.job", job.job_id)
        headers = {"location": f"/v1/jobs/{job.job_id}"}
        return JSONResponse(_body(jobs.standing(job.job_id)), status_code=202, headers=headers)

    @app.get("/v1/jobs/{job_id}")
    async def get_job(job_id: str) -> Response:
        return JSONResponse(_body(jobs.standing(job_id)))

    @app.get("/v1/jobs/{job_id}/result")
    async def get_job_result(job_id: str) -> Response:
        headers = {"cache-control": "private, no-store"}
        pieces = list(slices(await jobs.result(job_id)))
        return PiecesResponse(pieces, media_type="application/json", headers=headers)

    @app.delete("/v1/jobs/{job_id}")
    async def delete_job(job_id: str) -> Response:
        known = jobs.standing(job_id).job
        job = await jobs.cancel(job_id)
        return JSONResponse({"id": job_id, "object": "job", "status": job.state.value, "deleted": known.ended})


def _body(standing: Standing) -> dict[str, object]:
    job, starts_in_s = standing.job, standing.starts_in_s
    error = None if job.error_code is None else {"code": job.error_code, "message": job.error_message}
    return {
        "id": job.job_id,
        "object": "job",
        "status": job.state.value,
        "progress": _progress(standing),
        "step": standing.step,
        "steps": standing.steps,
        "queue_position": standing.place,
        "estimated_start_at": None
        if starts_in_s is None or job.state is not JobState.QUEUED
        else round(time.time() + starts_in_s),
        "estimated_seconds": round(job.expected_s, 3),
        "created_at": round(job.created_s),
        "started_at": None if job.started_s is None else round(job.started_s),
        "completed_at": None if job.ended_s is None else round(job.ended_s),
        "error": error,
    }


def _progress(standing: Standing) -> int:
    """Percent of the steps that are done; 100 only for a result that can be fetched."""
    if standing.job.state is JobState.SUCCEEDED:
        return 100
    return min(99, 100 * standing.step // standing.steps) if standing.steps else 0
