"""The safety hook over the socket: on every path, before and after the card, and when it cannot look."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.checkpoints import demo_as
from server.classifiers import BLUE, CYAN, RED, tiny_classifier
from server.running import RunningServer, encoded, picture, png_base64, stub_server, until

DENIED = "a canary4711 in the sky"
CODE = "content_policy_violation"
KIND = "image_generation_user_error"
# The classifier imports torch.
START_S = 150


def children(server: RunningServer) -> list[int]:
    path = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def classifier_pid(server: RunningServer) -> int:
    (pid,) = [
        pid for pid in children(server) if b"imageedit_server.safety.loop" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return pid


@pytest.fixture(scope="module")
def denylist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("list") / "denylist"
    path.write_text("# not here\ncanary4711\n")
    return path


@pytest.fixture(scope="module")
def server(denylist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    arguments = ("--prompt-denylist", str(denylist), "--jobs-dir", str(tmp_path_factory.mktemp("jobs")))
    with stub_server(*arguments, "--warm-cfg", "on", "--log-level", "debug", edit_s=0.05) as running:
        yield running


def by_json(server: RunningServer, prompt: str) -> httpx.Response:
    return server.edit(prompt=prompt)


def by_form(server: RunningServer, prompt: str, **fields: str) -> httpx.Response:
    files = {"image": ("a.png", encoded(picture()))}
    return httpx.post(server.api + "/v1/images/edits", data={"prompt": prompt} | fields, files=files, timeout=50)


def by_stream(server: RunningServer, prompt: str) -> httpx.Response:
    return by_form(server, prompt, stream="true")


def by_generation(server: RunningServer, prompt: str) -> httpx.Response:
    return httpx.post(server.api + "/v1/images/generations", json={"prompt": prompt}, timeout=50)


def by_job(server: RunningServer, prompt: str) -> httpx.Response:
    return httpx.post(server.api + "/v1/jobs", json={"image": png_base64(), "prompt": prompt}, timeout=50)


@pytest.mark.parametrize("send", [by_json, by_form, by_stream, by_job])
def test_a_denied_prompt_is_refused_on_every_path_without_saying_why(
    server: RunningServer, send: Callable[[RunningServer, str], httpx.Response]
) -> None:
    before = server.metric("imageedit_safety_refused_total", reason="prompt")
    refused = server.metric("imageedit_refused_requests_total", reason="content_policy")
    answer = send(server, DENIED)
    error = answer.json()["error"]

    assert (answer.status_code, error["code"], error["type"], error["param"]) == (400, CODE, KIND, "prompt")
    assert "canary" not in answer.text
    assert server.metric("imageedit_safety_refused_total", reason="prompt") == before + 1
    assert server.metric("imageedit_refused_requests_total", reason="content_policy") == refused + 1
    assert send(server, "a blue sky").status_code in (200, 202)


def test_a_denied_prompt_is_refused_where_pictures_are_made_from_text(denylist: Path, tmp_path: Path) -> None:
    model = ("--model-dir", str(demo_as(tmp_path, "QwenImagePipeline")))
    with stub_server("--prompt-denylist", str(denylist), *model, edit_s=0.05) as painter:
        answer = by_generation(painter, DENIED)

        assert (answer.status_code, answer.json()["error"]["code"]) == (400, CODE)
        assert by_generation(painter, "a blue sky").status_code == 200
        assert "canary" not in painter.log()


def test_a_negative_prompt_may_name_what_is_denied(server: RunningServer) -> None:
    answer = server.edit(prompt="a blue sky", negative_prompt=DENIED, true_cfg_scale=4)

    assert answer.status_code == 200


def test_neither_log_nor_metrics_hold_the_prompt(server: RunningServer) -> None:
    by_json(server, DENIED)

    assert "content_refused" in server.log()
    assert "canary" not in server.log()
    assert "canary" not in server.get("/metrics").text


def test_healthz_says_what_is_on(server: RunningServer) -> None:
    assert server.health()["safety"] == {"denylist": "on", "classifier": "off"}


def test_a_changed_list_counts_at_once_and_a_broken_one_leaves_the_last_good_one(tmp_path: Path) -> None:
    path = tmp_path / "denylist"
    path.write_text("canary4711\n")
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    with stub_server("--prompt-denylist", str(path), "--jobs-dir", str(jobs), edit_s=0.05) as server:
        path.write_text("re:(\n")
        assert by_json(server, DENIED).status_code == 400
        assert server.metric("imageedit_denylist_stale") == 1
        assert server.health()["safety"]["denylist"] == "stale"

        path.write_text("zebra\n")
        assert by_json(server, DENIED).status_code == 200
        assert by_json(server, "a zebra").status_code == 400
        assert server.metric("imageedit_denylist_stale") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prompt-denylist", "{folder}/none"), "cannot be read"),
        (("--prompt-denylist", "{folder}/bad"), "line 1"),
        (("--safety-labels", "nsfw"), "--safety-labels has no effect"),
        (("--safety-classifier", "{folder}"), "--safety-labels is empty"),
        (("--safety-classifier", "{folder}", "--safety-labels", "nsfw"), "holds no config.json"),
        (("--safety-threshold", "0"), "--safety-threshold"),
    ],
)
def test_a_hook_that_cannot_work_ends_the_start(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "bad").write_text("re:(a+)+\n")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    with stub_server(*given, ready=False) as server:
        assert server.exit_code(50) == 64
        assert server.termination_message().startswith("SettingsInvalid: ")
        assert message in server.termination_message()


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a classifier that refuses what is red."""
    folder = tiny_classifier(tmp_path_factory.mktemp("classifier"))
    arguments = ("--safety-classifier", str(folder), "--safety-labels", "unsafe", "--max-references", "2")
    jobs = ("--jobs-dir", str(tmp_path_factory.mktemp("looking-jobs")))
    with stub_server(*arguments, *jobs, edit_s=0.05, ready=False) as running:
        wait_looking(running)
        yield running


def wait_looking(server: RunningServer) -> None:
    def ready() -> bool:
        assert server.process.poll() is None, server.log()
        try:
            return server.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    until(ready, timeout_s=START_S, what="the server with its classifier is ready")


def of(*colours: tuple[int, int, int]) -> dict[str, Any]:
    return {"image": [png_base64(picture(colour=colour)) for colour in colours]}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("colours", "reason", "param"),
    [((RED,), "picture", "image"), ((BLUE, RED), "picture", "image[1]"), ((CYAN,), "result", None)],
)
def test_pictures_are_looked_at_before_the_card_and_results_after_it(
    looking: RunningServer, colours: tuple[tuple[int, int, int], ...], reason: str, param: str | None
) -> None:
    def counts() -> tuple[float, float]:
        edits = looking.metric("imageedit_edit_seconds_count", size="128x128")
        return looking.metric("imageedit_safety_refused_total", reason=reason), edits

    before = counts()
    answer = looking.edit(**of(*colours))
    error = answer.json()["error"]

    assert (answer.status_code, error["code"], error["type"], error["param"]) == (400, CODE, KIND, param)
    assert counts() == (before[0] + 1, before[1] + (1 if reason == "result" else 0))
    assert looking.edit(**of(BLUE)).status_code == 200


@pytest.mark.timeout(240)
def test_a_withheld_result_is_the_error_of_a_stream_and_of_a_job(looking: RunningServer) -> None:
    files = {"image": ("a.png", encoded(picture(colour=CYAN)))}
    data = {"prompt": "x", "stream": "true", "steps": "24"}
    streamed = httpx.post(looking.api + "/v1/images/edits", data=data, files=files, timeout=50)
    job = httpx.post(looking.api + "/v1/jobs", json={**of(CYAN), "prompt": "x"}).json()

    def state() -> dict[str, Any]:
        body: dict[str, Any] = httpx.get(looking.api + f"/v1/jobs/{job['id']}").json()
        return body

    until(lambda: state()["status"] == "failed", timeout_s=30, what="the job has failed")
    assert CODE in streamed.text
    assert "b64_json" not in streamed.text
    assert state()["error"]["code"] == CODE


@pytest.mark.timeout(240)
def test_a_classifier_that_dies_takes_readiness_away_and_nothing_passes_until_it_is_back(
    looking: RunningServer,
) -> None:
    first = classifier_pid(looking)
    os.kill(first, signal.SIGKILL)
    until(lambda: looking.health()["safety"]["classifier"] != "ready", what="the loss is seen")
    ready, refused = looking.get("/readyz"), looking.edit(**of(RED))

    assert ready.status_code == 503
    assert ready.json()["reason"].startswith("safety classifier ")
    assert looking.get("/warmz").json()["warm"] is False
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
    assert looking.metric("imageedit_safety_classifier_up") == 0

    wait_looking(looking)
    assert classifier_pid(looking) != first
    assert looking.edit(**of(RED)).json()["error"]["code"] == CODE
    assert looking.edit(**of(BLUE)).status_code == 200
    assert looking.metric("imageedit_safety_classifier_up") == 1


@pytest.mark.timeout(240)
def test_every_line_of_the_log_is_json_with_a_classifier_too(looking: RunningServer) -> None:
    looking.edit(**of(RED))

    for line in looking.log().splitlines():
        json.loads(line)
