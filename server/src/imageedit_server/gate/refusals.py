"""Which errors refuse an edit, and under what reason they are counted. Pure."""

from __future__ import annotations

INVALID = "invalid"

# | error code                                   | reason             |
# | -------------------------------------------- | ------------------ |
# | of the admission, and most of these          | itself             |
# | content_policy_violation                     | content_policy     |
# | invalid_api_key                              | unauthorized       |
# | what is no refusal of an edit                | none               |
# | any other: something in the request is wrong | invalid            |
BY_CODE = {
    "draining": "draining",
    "not_ready": "not_ready",
    "queue_full": "queue_full",
    "wait_too_long": "wait_too_long",
    "too_many_uploads": "too_many_uploads",
    "too_many_jobs": "too_many_jobs",
    "upload_too_slow": "upload_too_slow",
    "headers_too_slow": "headers_too_slow",
    "too_many_connections": "too_many_connections",
    "jobs_unavailable": "jobs_unavailable",
    "idempotency_key_reused": "idempotency_key_reused",
    "safety_unavailable": "safety_unavailable",
    "content_policy_violation": "content_policy",
    "invalid_api_key": "unauthorized",
}

# Accepted and then not done, or about something else than a new edit; other metrics count these.
NO_REFUSALS = frozenset(
    {
        "deadline_missed",
        "edit_failed",
        "file_not_found",
        "file_not_written",
        "internal_error",
        "job_not_done",
        "job_not_found",
        "job_without_result",
        "method_not_allowed",
        "not_found",
        "result_not_written",
        "worker_lost",
    }
)

REASONS = (*dict.fromkeys(BY_CODE.values()), INVALID)


def reason_of(code: str) -> str | None:
    """The reason under which an error with this code is counted, or None where it refuses no edit."""
    return None if code in NO_REFUSALS else BY_CODE.get(code, INVALID)
