"""Jobs over the socket, and over the death of worker and server."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from imageedit_server.api.job_store import JobStore
from server.running import NO_TLS, RunningServer, decoded, in_background, png_base64, running_server, stub_server, until

BODY = {"image": png_base64(), "prompt": "make the background blue"}


def call(server: RunningServer, method: str, path: str, **options: Any) -> httpx.Response:
    return httpx.request(method, server.api + path, timeout=30, verify=NO_TLS, **options)


def submit(server: RunningServer, headers: dict[str, str] | None = None, **fields: object) -> str:
    answer = call(server, "POST", "/v1/jobs", json=BODY | fields, headers=headers)
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{body['id']}"
    return str(body["id"])


def job(server: RunningServer, job_id: str) -> dict[str, Any]:
    answer = call(server, "GET", f"/v1/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def is_now(server: RunningServer, job_id: str, status: str, timeout_s: float = 20) -> dict[str, Any]:
    until(lambda: job(server, job_id)["status"] == status, timeout_s=timeout_s, what=f"{job_id} is {status}")
    return job(server, job_id)


@contextlib.contextmanager
def jobs_server(folder: Path, *arguments: str, edit_s: float = 0.2) -> Iterator[RunningServer]:
    with stub_server("--jobs-dir", str(folder), *arguments, edit_s=edit_s) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with jobs_server(tmp_path_factory.mktemp("jobs"), edit_s=1.0) as server:
        yield server


def test_a_job_is_accepted_runs_and_gives_what_an_edit_gives(shared: RunningServer) -> None:
    job_id = submit(shared, seed=7)
    running = is_now(shared, job_id, "in_progress")
    early = call(shared, "GET", f"/v1/jobs/{job_id}/result")
    done = is_now(shared, job_id, "completed")
    answer = call(shared, "GET", f"/v1/jobs/{job_id}/result")

    assert running["steps"] == 16
    assert running["progress"] < 100
    assert (early.status_code, early.json()["error"]["code"]) == (409, "job_not_done")
    assert int(early.headers["retry-after"]) >= 1
    assert done["progress"] == 100
    assert done["created_at"] <= done["started_at"] <= done["completed_at"]
    assert answer.status_code == 200
    assert decoded(answer.json()["output"]).size == (128, 128)
    assert (answer.json()["seed"], answer.json()["output"]) == (7, shared.edit(seed=7).json()["output"])


def test_progress_is_told_by_step(shared: RunningServer) -> None:
    job_id = submit(shared)
    seen = set()
    while (now := job(shared, job_id))["status"] != "completed":
        seen.add(now["step"])
        time.sleep(0.02)

    assert len(seen) > 4


def test_jobs_that_wait_know_their_place_and_their_start(shared: RunningServer) -> None:
    first, second, third = (submit(shared) for _ in range(3))
    is_now(shared, first, "in_progress")
    places = [job(shared, job_id) for job_id in (second, third)]
    for job_id in (second, third):
        call(shared, "DELETE", f"/v1/jobs/{job_id}")
    is_now(shared, first, "completed")

    assert [one["status"] for one in places] == ["queued", "queued"]
    assert [one["queue_position"] for one in places] == [1, 2]
    assert 0.5 <= places[1]["estimated_start_at"] - time.time() + 2 <= 4


def test_a_job_that_waits_is_cancelled_and_never_runs(shared: RunningServer) -> None:
    first, second = submit(shared), submit(shared)
    answer = call(shared, "DELETE", f"/v1/jobs/{second}").json()
    is_now(shared, first, "completed")

    assert (answer["status"], answer["deleted"]) == ("cancelled", False)
    assert job(shared, second)["started_at"] is None
    result = call(shared, "GET", f"/v1/jobs/{second}/result")
    assert (result.status_code, result.json()["error"]["code"]) == (409, "job_without_result")


def test_a_job_that_runs_is_cancelled_at_its_next_step(shared: RunningServer) -> None:
    job_id = submit(shared)
    is_now(shared, job_id, "in_progress")
    call(shared, "DELETE", f"/v1/jobs/{job_id}")
    until(lambda: shared.health()["running"] == 0, timeout_s=0.9, what="the card is free")

    assert job(shared, job_id)["status"] == "cancelled"


def test_a_job_that_has_ended_is_deleted_with_its_result(shared: RunningServer) -> None:
    job_id = submit(shared)
    is_now(shared, job_id, "completed")
    assert call(shared, "DELETE", f"/v1/jobs/{job_id}").json()["deleted"] is True

    for path in (f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id}/result", "/v1/jobs/job_unknown"):
        answer = call(shared, "GET", path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "job_not_found")


def test_a_wrong_job_is_refused_when_it_is_sent(shared: RunningServer) -> None:
    for fields, code in (({"prompt": ""}, "empty_prompt"), ({"image": "AAAA"}, "invalid_image"), ({"x": 1}, None)):
        answer = call(shared, "POST", "/v1/jobs", json=BODY | fields)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == (code or "unknown_parameter")


def test_one_key_is_one_job(shared: RunningServer) -> None:
    key = {"idempotency-key": "order-1"}
    assert submit(shared, key) == submit(shared, key)
    conflict = call(shared, "POST", "/v1/jobs", json=BODY | {"seed": 3}, headers=key)

    assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "idempotency_key_reused")


def test_requests_do_not_wait_behind_all_jobs(shared: RunningServer) -> None:
    jobs = [submit(shared) for _ in range(6)]
    started_s = time.monotonic()
    assert shared.edit().status_code == 200
    took_s = time.monotonic() - started_s
    for job_id in jobs:
        call(shared, "DELETE", f"/v1/jobs/{job_id}")

    assert took_s < 4.0


def test_without_a_folder_there_are_no_jobs() -> None:
    with stub_server(edit_s=0.01) as server:
        assert call(server, "POST", "/v1/jobs", json=BODY).status_code == 404


def test_jobs_survive_the_sudden_death_of_the_whole_server(tmp_path: Path) -> None:
    with jobs_server(tmp_path, edit_s=1.5) as server:
        done = submit(server, seed=1)
        is_now(server, done, "completed")
        runs, waits = submit(server, seed=2), submit(server, seed=3)
        is_now(server, runs, "in_progress")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(10)

    with jobs_server(tmp_path, edit_s=0.1) as server:
        assert call(server, "GET", f"/v1/jobs/{done}/result").json()["seed"] == 1
        for job_id, seed in ((runs, 2), (waits, 3)):
            is_now(server, job_id, "completed")
            assert call(server, "GET", f"/v1/jobs/{job_id}/result").json()["seed"] == seed


def test_a_job_without_a_seed_has_the_same_one_when_it_runs_again(tmp_path: Path) -> None:
    with jobs_server(tmp_path, edit_s=1.5) as server:
        job_id = submit(server)
        is_now(server, job_id, "in_progress")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(10)
    store = JobStore(tmp_path)
    (found,) = store.all()
    store.close()

    with jobs_server(tmp_path, edit_s=0.1) as server:
        is_now(server, job_id, "completed")
        assert call(server, "GET", f"/v1/jobs/{job_id}/result").json()["seed"] == found.job.seed


def test_jobs_run_while_requests_keep_the_queue_full(tmp_path: Path) -> None:
    with jobs_server(tmp_path, "--queue-hard-limit", "1", edit_s=0.2) as server:
        ended = threading.Event()

        def ask_again_and_again() -> httpx.Response:
            while True:
                answer = server.edit()
                if ended.is_set():
                    return answer

        with in_background(*[ask_again_and_again] * 4):
            try:
                until(lambda: server.edit().status_code == 429, timeout_s=40, what="the queue is full")
                for job_id in [submit(server) for _ in range(3)]:
                    is_now(server, job_id, "completed", timeout_s=40)
            finally:
                ended.set()


def test_one_more_job_than_may_be_there_is_refused_until_one_is_deleted(tmp_path: Path) -> None:
    with jobs_server(tmp_path, "--jobs-max-count", "1", edit_s=0.05) as server:
        job_id = submit(server)
        is_now(server, job_id, "completed")
        refused = call(server, "POST", "/v1/jobs", json=BODY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_jobs")
        assert int(refused.headers["retry-after"]) >= 1
        call(server, "DELETE", f"/v1/jobs/{job_id}")

        assert submit(server)


def test_a_job_under_which_the_server_died_twice_is_not_run_again(tmp_path: Path) -> None:
    job_id = ""
    for _ in range(2):
        with jobs_server(tmp_path, edit_s=1.5) as server:
            job_id = job_id or submit(server)
            is_now(server, job_id, "in_progress")
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait(10)

    with jobs_server(tmp_path, edit_s=0.1) as server:
        ended = job(server, job_id)
        assert (ended["status"], ended["error"]["code"]) == ("failed", "quarantined")
        assert is_now(server, submit(server), "completed")


def test_a_job_that_kills_its_worker_twice_is_quarantined_and_the_next_one_runs(tmp_path: Path) -> None:
    with jobs_server(tmp_path, edit_s=1.5) as server:
        poison, harmless = submit(server), submit(server)
        for _ in range(2):
            is_now(server, poison, "in_progress")
            os.kill(server.worker_pid(), signal.SIGKILL)
            until(lambda: job(server, poison)["status"] != "in_progress", what="the death is noted")

        assert is_now(server, poison, "failed")["error"]["code"] == "quarantined"
        is_now(server, harmless, "completed", timeout_s=30)
        assert server.metric("imageedit_jobs_ended_total", state="quarantined") == 1


def test_a_drain_finishes_the_job_that_runs_and_leaves_the_rest_for_the_next_process(tmp_path: Path) -> None:
    with jobs_server(tmp_path, edit_s=1.5) as server:
        runs, waits = submit(server), submit(server)
        is_now(server, runs, "in_progress")
        server.terminate()
        assert server.exit_code() == 0

    with jobs_server(tmp_path, edit_s=0.1) as server:
        assert job(server, runs)["status"] == "completed"
        assert call(server, "GET", f"/v1/jobs/{runs}/result").status_code == 200
        is_now(server, waits, "completed")


def test_two_servers_on_one_folder_are_refused(tmp_path: Path) -> None:
    arguments = ("--stub-edit-seconds", "0.1", "--jobs-dir", str(tmp_path))
    with jobs_server(tmp_path), running_server(*arguments, ready=False) as second:
        assert second.exit_code() == 64
        assert "--jobs-dir" in second.termination_message()


def test_probes_answer_while_large_jobs_are_written(shared: RunningServer) -> None:
    large = png_base64(Image.effect_noise((2000, 2000), 90).convert("RGB"))
    slowest_s = 0.0
    with in_background(*[lambda: call(shared, "POST", "/v1/jobs", json=BODY | {"image": large})] * 3) as sent:
        while not sent.done():
            started_s = time.monotonic()
            assert shared.get("/healthz").status_code == 200
            slowest_s = max(slowest_s, time.monotonic() - started_s)
        jobs = [answer.json()["id"] for answer in sent.results()]
    for job_id in jobs:
        call(shared, "DELETE", f"/v1/jobs/{job_id}")

    assert slowest_s < 1.0
