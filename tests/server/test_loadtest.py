"""`imageedit-server loadtest` as a command against the real server; its edits are stubs of a known time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from server.running import SOURCE, RunningServer, answers, encoded, free_ports, picture, stub_server, until

TIMEOUT_S = 50


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "imageedit_server", "loadtest", *arguments]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCE)}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small picture, so that little but the stub's time is measured."""
    file = tmp_path / "small.png"
    file.write_bytes(encoded(picture()))
    return file


def loadtest(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def measured(server: RunningServer, small: Path, *arguments: str) -> dict[str, Any]:
    done = loadtest(server.api, "--image", str(small), "-o", "json", *arguments)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_sweep_finds_the_plateau_of_one_slot_and_draws_it(small: Path, tmp_path: Path) -> None:
    plot = tmp_path / "plateau.svg"
    with stub_server(edit_s=0.2) as server:
        said = measured(server, small, "--concurrency", "1,2,4", "--seconds", "2", "--plot", str(plot))
        counted = server.metric("imageedit_requests_total", route="/v1/edit", code="200")

    one, two, four = said["levels"]
    assert [one["concurrency"], two["concurrency"], four["concurrency"]] == [1, 2, 4]
    assert counted == 1 + sum(level["answered"] for level in said["levels"])
    # One slot of 0.2 s: never more than five a second, and four clients wait longer than one.
    assert 0 < said["capacity_per_s"] <= 5.0
    assert 0.2 <= one["latency_s"]["p50"] < four["latency_s"]["p50"]
    assert said["plateau"]["concurrency"] in (1, 2, 4)
    assert plot.read_text().startswith("<svg")


def test_refusals_are_counted_by_their_reason(small: Path) -> None:
    with stub_server("--queue-hard-limit", "0", edit_s=0.3) as server:
        said = measured(server, small, "--concurrency", "4", "--seconds", "2")
        refused = server.metric("imageedit_refused_requests_total", reason="queue_full")

    assert said["levels"][0]["refused"] == {"queue_full": refused}
    assert refused > 0
    assert said["levels"][0]["failed"] == {}


def test_the_number_of_requests_bounds_a_level(small: Path) -> None:
    with stub_server(edit_s=0.02) as server:
        said = measured(server, small, "--concurrency", "3", "--seconds", "40", "--max-requests", "7")
    assert said["levels"][0]["answered"] == 7


def test_people_see_a_table_bars_and_the_plateau(small: Path) -> None:
    with stub_server(edit_s=0.1) as server:
        done = loadtest(server.api, "--image", str(small), "--concurrency", "1,2", "--seconds", "1")
    assert done.returncode == 0
    assert re.search(r"clients +edits/s +p50 s", done.stderr)
    assert re.search(r"^ +2  #+ \d", done.stdout, re.MULTILINE)
    assert "Plateau at" in done.stdout


def test_ctrl_c_shows_what_was_measured(small: Path) -> None:
    with stub_server(edit_s=0.1) as server:
        arguments = (server.api, "--image", str(small), "--concurrency", "1,2", "--seconds", "600", "-o", "json")
        with subprocess.Popen(
            command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            until(
                lambda: server.metric("imageedit_edit_seconds_count", size="128x128") > 4,
                timeout_s=TIMEOUT_S,
                what="some edits are done",
            )
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=TIMEOUT_S)
    said = json.loads(out)
    assert process.returncode == 0
    assert [level["whole"] for level in said["levels"]] == [False]
    assert said["levels"][0]["answered"] > 0


def test_patience_for_less_than_one_edit_is_too_little(small: Path) -> None:
    with stub_server(edit_s=1.0) as server:
        done = loadtest(server.api, "--image", str(small), "--timeout", "0.3")
    assert done.returncode == 2
    assert "give a longer --timeout" in done.stderr


def test_an_address_where_nobody_listens_is_named() -> None:
    (port,) = free_ports(1)
    done = loadtest(f"http://127.0.0.1:{port}")
    assert done.returncode == 2
    assert f"http://127.0.0.1:{port} cannot be reached" in done.stderr


def test_the_probe_port_is_no_api() -> None:
    with stub_server() as server:
        done = loadtest(server.probes)
    assert done.returncode == 2
    assert "has no /v1/edit" in done.stderr


def test_a_missing_key_is_asked_for_and_a_given_one_is_used(small: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nsecret-key\n")
    with stub_server("--api-keys-file", str(keys), edit_s=0.02) as server:
        refused = loadtest(server.api, "--image", str(small))
        said = measured(
            server, small, "--api-key-file", str(keys), "--concurrency", "1", "--seconds", "5", "--max-requests", "3"
        )
    assert refused.returncode == 2
    assert "--api-key-file" in refused.stderr
    assert said["levels"][0]["answered"] == 3


def test_a_server_that_still_loads_is_not_measured(small: Path) -> None:
    with stub_server("--stub-load-seconds", "60", ready=False) as server:
        until(lambda: answers(server), timeout_s=TIMEOUT_S, what="the server listens")
        done = loadtest(server.api, "--image", str(small))
    assert done.returncode == 2
    assert "is not ready" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--concurrency", "4,2"], "rising list"),
        (["--concurrency", "0"], "at least 1"),
        (["--seconds", "-1"], "number of seconds"),
        (["--plot", "plateau.pdf"], ".svg nor in .png"),
        (["--image", "/no/such/file.png"], "/no/such/file.png cannot be read"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], said: str) -> None:
    done = loadtest("http://127.0.0.1:1", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
