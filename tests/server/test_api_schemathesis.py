"""schemathesis calls the running server by the server's own OpenAPI document: right and wrong requests to every call.

No answer may be a server error, and each must be what the document says: status, type, headers, body. Wrong requests
must be refused. Right ones may be: the rules between fields (`steps` or `quality`, not both) are beyond a schema.
The numbers are fixed, so that a run here is a run everywhere.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from imageedit_server.api.openapi import document
from server.checkpoints import demo_as
from server.running import NO_TLS, RunningServer, encoded, picture, png_base64, stub_server

# Half a second a test on a free machine, and no fault of the server on one that is not.
pytestmark = pytest.mark.timeout(300)

EXAMPLES = 60
FILES = [encoded(picture(64, 64)), encoded(picture(40, 30), "JPEG"), encoded(picture(40, 30), "WEBP"), b"no picture"]
SEVERAL = ("--warm-cfg", "on", "--max-references", "2")
PATHS = [
    (path, method) for path, methods in document(needs_key=False, jobs=True)["paths"].items() for method in methods
]
BODIES = [path for path, method in PATHS if method == "post"]

schemathesis.openapi.format("binary", st.sampled_from(FILES))
schemathesis.openapi.format("byte", st.sampled_from([base64.b64encode(file).decode() for file in FILES]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    files, jobs = (str(tmp_path_factory.mktemp(name)) for name in ("files", "jobs"))
    with stub_server("--files-dir", files, "--jobs-dir", jobs, *SEVERAL, edit_s=0.01) as running:
        yield running


@pytest.fixture(scope="module")
def painter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that makes pictures from text."""
    folder = tmp_path_factory.mktemp("painter")
    options = ("--model-dir", str(demo_as(folder, "QwenImagePipeline")), "--files-dir", str(folder), *SEVERAL)
    with stub_server(*options, edit_s=0.01) as running:
        yield running


def of(server: RunningServer) -> Any:
    return schemathesis.openapi.from_url(server.api + "/openapi.json")


def check(operation: Any, mode: GenerationMode) -> Counter[int]:
    """Call an operation with many requests; how often each status was answered."""
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def call(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and "x-request-deadline" in (case.headers or {}):
            # Its forms are beyond a schema, and nearly every text would be refused for that alone.
            case.headers["x-request-deadline"] = "60"
        answer = case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=50)
        statuses[answer.status_code] += 1

    call()
    return statuses


@pytest.mark.parametrize(("path", "method"), PATHS)
def test_right_requests_get_what_the_document_says(
    path: str, method: str, server: RunningServer, painter: RunningServer
) -> None:
    at = painter if path == "/v1/images/generations" else server
    statuses = check(of(at)[path][method], GenerationMode.POSITIVE)

    assert max(statuses) < 500
    # Names of models, files and jobs cannot be guessed.
    assert statuses[404] == EXAMPLES if "{" in path else statuses.keys() & {200, 202}


@pytest.mark.parametrize("path", BODIES)
def test_wrong_requests_are_refused_as_the_document_says(
    path: str, server: RunningServer, painter: RunningServer
) -> None:
    at = painter if path == "/v1/images/generations" else server
    statuses = check(of(at)[path]["post"], GenerationMode.NEGATIVE)

    assert sum(statuses.values()) == EXAMPLES
    # 429: a deadline is among the headers, and on a loaded machine a short one cannot be met.
    assert set(statuses) <= {400, 404, 405, 429}
    assert statuses[429] < EXAMPLES // 2


def test_what_can_be_named_is_what_the_document_says(server: RunningServer) -> None:
    schema, sent = of(server), {"image": png_base64(), "prompt": "make the background blue"}
    kept = httpx.post(
        server.api + "/v1/images/edits",
        data={"prompt": "make it blue", "response_format": "url"},
        files={"image": encoded(picture())},
        timeout=50,
        verify=NO_TLS,
    ).json()
    job = httpx.post(server.api + "/v1/jobs", json=sent, timeout=50, verify=NO_TLS).json()["id"]
    calls = [
        ("/v1/models/{model}", "get", {"model": "image-edit"}),
        ("/v1/files/{name}", "get", {"name": Path(kept["data"][0]["url"]).name}),
        ("/v1/jobs/{job}", "get", {"job": job}),
        ("/v1/jobs/{job}/result", "get", {"job": job}),
        ("/v1/jobs/{job}", "delete", {"job": job}),
    ]
    statuses = [
        schema[path][method].Case(path_parameters=names).call_and_validate(timeout=50).status_code
        for path, method, names in calls
    ]

    # The job may not have ended yet.
    assert [status for status in statuses if status != 409] in ([200] * 5, [200] * 4)
