"""Runs litellm's proxy in front of a server: a program of its own, in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from server.running import NO_TLS, free_ports

ROOT = Path(__file__).resolve().parents[2]
# It loads a hundred packages before it listens.
START_S = 240.0
KEY = "sk-loopback-only-0123456789abcdef0123456789abcdef"
MODEL = "edits"


@dataclass(frozen=True, kw_only=True)
class LitellmProxy:
    """Where clients call it."""

    base_url: str


def environment() -> Path:
    """The virtual environment of requirements/extra/litellm.txt, made if it is not there; progress goes to stderr."""
    command = [sys.executable, str(ROOT / "tests" / "tools" / "bootstrap.py"), "ensure", "litellm"]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


@contextlib.contextmanager
def litellm_proxy(folder: Path, *, api_base: str) -> Iterator[LitellmProxy]:
    """Run the proxy on loopback; nothing of it leaves the machine."""
    program = environment() / "bin" / "litellm"
    (port,) = free_ports(1)
    config = folder / "config.yaml"
    config.write_text(json.dumps(_config(api_base)))  # JSON is YAML
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "NO_PROXY": "*",
        "LITELLM_MASTER_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the list of prices inside the package, not the one on the network
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--telemetry", "False"], env=variables, stdout=log, stderr=log, cwd=folder
        )
    try:
        _wait_until_it_listens(process, port, folder / "log")
        yield LitellmProxy(base_url=f"http://127.0.0.1:{port}/v1")
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def _config(api_base: str) -> dict[str, Any]:
    """What the page about the API recommends, with another address."""
    page = (ROOT / "docs" / "server-api.md").read_text()
    block = page.split("\n## Behind litellm\n")[1].split("```yaml\n")[1].split("```")[0]
    config: dict[str, Any] = yaml.safe_load(block)
    (model,) = config["model_list"]
    assert model["model_name"] == MODEL
    model["litellm_params"]["api_base"] = api_base
    return config | {"litellm_settings": config["litellm_settings"] | {"telemetry": False}}


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise AssertionError(f"the proxy ended with {process.returncode}:\n{log.read_text()[-4000:]}")
        with contextlib.suppress(httpx.TransportError):
            address = f"http://127.0.0.1:{port}/health/liveliness"
            if httpx.get(address, timeout=10, verify=NO_TLS).status_code == 200:
                return
        time.sleep(0.3)
    raise AssertionError(f"the proxy does not listen after {START_S:g} s:\n{log.read_text()[-4000:]}")
