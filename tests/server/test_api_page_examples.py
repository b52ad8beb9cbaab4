"""The examples of the page about the API run as they stand there, but for the address."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from server.running import RunningServer, decoded, encoded, picture, stub_server

PAGE = (Path(__file__).parents[2] / "docs" / "server-api.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHELL = [block for blocks in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for block in blocks.split("\n\n")]
ADDRESS = "http://qwen-edit"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server(edit_s=0.05) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "before.png").write_bytes(encoded(picture()))
    return tmp_path


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"NO_PROXY": "*"}, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_examples_run_one_after_the_other(server: RunningServer, folder: Path) -> None:
    program = "\n".join(PYTHON).replace(ADDRESS, server.api)
    said = run([sys.executable, "-c", program], folder)

    with Image.open(folder / "after.png") as after:
        assert after.size == (128, 128)
    assert "size invalid_parameter" in said
    assert "size must be auto, original" in said


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("command", SHELL)
def test_the_curl_examples_run(server: RunningServer, folder: Path, command: str) -> None:
    said = run(["bash", "-c", command.strip().replace(ADDRESS, server.api) + " --silent --fail"], folder)

    answer = json.loads(said)

    assert decoded(answer["output"] if "output" in answer else answer["data"][0]["b64_json"]).size == (128, 128)
