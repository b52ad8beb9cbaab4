"""A worker that dies, a missing model, wrong settings: an answer for each, and an exit code that says which."""

from __future__ import annotations

import os
import signal
import socket

from server.running import RunningServer, in_background, running_server, stub_server, until, wait_ready


def is_running(server: RunningServer) -> None:
    until(lambda: server.health()["running"] == 1, what="an edit runs")


def kill_worker(server: RunningServer) -> None:
    os.kill(server.worker_pid(), signal.SIGKILL)


def test_a_worker_killed_in_the_middle_of_an_edit_costs_that_edit_and_nothing_else() -> None:
    with stub_server(edit_s=1.5) as server, in_background(server.edit) as broken:
        is_running(server)
        with in_background(server.edit) as waiting:
            until(lambda: server.health()["waiting"] == 1, what="one waits")
            kill_worker(server)
            answer = broken.results()[0]
            refused = server.edit()
            health = server.get("/healthz")

            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_lost")
            assert answer.headers["retry-after"]
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
            assert refused.headers["retry-after"] == "5"
            assert health.status_code == 200
            assert waiting.results()[0].status_code == 200
        assert server.edit().status_code == 200
        assert server.metric("imageedit_worker_restarts_total") == 1


def test_while_the_worker_is_replaced_the_pod_is_not_ready() -> None:
    with stub_server(edit_s=0.5) as server:
        kill_worker(server)
        until(lambda: server.get("/readyz").status_code == 503, what="not ready")
        assert server.get("/warmz").status_code == 503
        wait_ready(server)

        assert server.get("/warmz").json()["warm"] is True


def test_a_worker_lost_too_often_ends_the_pod_with_its_reason() -> None:
    with stub_server(edit_s=0.01) as server:
        for _ in range(3):
            kill_worker(server)
            until(lambda: server.get("/readyz").status_code == 503, what="the loss is seen")
            wait_ready(server)
        kill_worker(server)

        assert server.exit_code() == 69
        assert server.termination_message().startswith("WorkerLost: ")


def test_an_edit_that_waits_is_answered_when_the_worker_does_not_come_back() -> None:
    with stub_server(edit_s=2.0) as server:
        for _ in range(3):
            kill_worker(server)
            until(lambda: server.get("/readyz").status_code == 503, what="the loss is seen")
            wait_ready(server)
        with in_background(server.edit) as running:
            is_running(server)
            with in_background(server.edit) as waiting:
                until(lambda: server.health()["waiting"] == 1, what="one waits")
                kill_worker(server)
                answers = [*running.results(), *waiting.results()]

        assert [answer.status_code for answer in answers] == [503, 503]
        assert [answer.json()["error"]["code"] for answer in answers] == ["worker_lost"] * 2
        assert server.exit_code() == 69


def test_a_missing_model_ends_the_process_with_its_reason() -> None:
    with running_server(model_dir="/nowhere/qwen", ready=False) as server:
        assert server.exit_code(50) == 65
        assert server.termination_message().startswith("ModelMissing: ")
        assert "/nowhere/qwen" in server.termination_message()


def test_a_wrong_setting_ends_the_process_with_its_reason() -> None:
    with running_server("--steps", "none", ready=False) as server:
        assert server.exit_code() == 64
        assert server.termination_message() == "SettingsInvalid: --steps 'none' is not a whole number from 2 to 200\n"


def test_a_port_in_use_is_a_wrong_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with running_server("--stub-edit-seconds", "0", "--probe-port", port, ready=False) as server:
            assert server.exit_code() == 64
            assert f"--probe-port {port} on --host 127.0.0.1 cannot be listened on" in server.termination_message()


def test_a_host_that_can_be_no_name_is_a_wrong_setting() -> None:
    with running_server("--host", "ü..b", ready=False) as server:
        assert server.exit_code() == 64
        assert "on --host ü..b cannot be listened on" in server.termination_message()


def test_a_path_that_is_no_text_is_a_wrong_setting() -> None:
    with running_server("--api-keys-file", "/keys/caf\udce9", ready=False) as server:
        assert server.exit_code() == 64
        assert server.termination_message().startswith("SettingsInvalid: --api-keys-file")


def test_a_model_path_that_the_file_system_refuses_is_an_unusable_model() -> None:
    with running_server(model_dir="/" + "a" * 300, ready=False) as server:
        assert server.exit_code() == 66
        assert "File name too long" in server.termination_message()


def test_a_termination_log_that_cannot_be_written_changes_nothing() -> None:
    with running_server("--steps", "0", ready=False, environ={"IMAGEEDIT_TERMINATION_LOG": "/nowhere/log"}) as server:
        assert server.exit_code() == 64
