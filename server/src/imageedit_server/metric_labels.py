"""What the labels of the metrics may say: known beforehand, so that each series is there before its first event."""

from __future__ import annotations

from typing import get_args

from imageedit_server.gate.dedupe import By
from imageedit_server.gate.jobs import ENDED, QUARANTINED, JobState
from imageedit_server.worker.failures import Reason

ROUTES = (
    "/v1/edit",
    "/v1/images/edits",
    "/v1/images/generations",
    "/v1/models",
    "/v1/models/{id}",
    "/v1/files/{name}",
    "/v1/jobs",
    "/v1/jobs/{id}",
    "/openapi.json",
    "/",
    "/page/{name}",
    "unknown",
)
CODES = (200, 202, 400, 401, 404, 405, 408, 409, 413, 429, 431, 499, 500, 503)
SAFETY_REASONS = ("prompt", "picture", "result")

# In the order of a request's way; three parts are on the card.
STAGES = ("receive", "parse", "decode", "safety", "wait", "prepare", "denoise", "finish", "encode", "send")
FAILURES = tuple(sorted(set(get_args(Reason)) - {"Cancelled"}))

JOBS_OPEN = (JobState.QUEUED.value, JobState.RUNNING.value)
JOBS_ENDED = (*(state.value for state in ENDED), QUARANTINED)
DROPS = ("too_late", "client_gone", "cancelled")
ATTACHED_BY = tuple(by.value for by in By)
