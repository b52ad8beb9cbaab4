"""A read that the apiserver could not answer just now is sent again, a few times and never for long."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.connection import connect
from imageedit_operator.kube.kinds import PODS
from imageedit_operator.kube.patience import PAUSES_S, Patience, again_after_s
from unit.operator_shell.loopback import answering

MIDDLE = 0.5
"""The random number at which a pause is as the table says."""


def failure(status: int, *, retry_after_s: float = 0.0, late: bool = False) -> ApiError:
    """What a request got."""
    return ApiError(status=status, reason="R", message="m", retry_after_s=retry_after_s, late=late)


@pytest.mark.parametrize(
    ("verb", "error", "tries", "pause_s"),
    [
        ("get", failure(429), 1, PAUSES_S[0]),
        ("list", failure(500), 1, PAUSES_S[0]),
        ("list", failure(502), 2, PAUSES_S[1]),
        ("get", failure(503), 2, PAUSES_S[1]),
        ("get", failure(504), 1, PAUSES_S[0]),
        ("get", failure(429, retry_after_s=1.0), 1, 1.0 + PAUSES_S[0]),
        ("get", failure(429, retry_after_s=2.0), 1, None),
        ("get", failure(0), 1, PAUSES_S[0]),
        ("get", failure(0, late=True), 1, None),
        ("get", failure(401), 1, None),
        ("get", failure(403), 1, None),
        ("get", failure(404), 1, None),
        ("list", failure(410), 1, None),
        ("get", failure(503), 3, None),
        *[(verb, failure(503), 1, None) for verb in ("create", "apply", "patch", "delete")],
    ],
)
def test_the_table_of_what_is_sent_again(verb: str, error: ApiError, tries: int, pause_s: float | None) -> None:
    assert again_after_s(verb, error, tries=tries, random=MIDDLE) == pause_s


def test_jitter_is_half_of_a_pause_to_either_side_and_never_less_than_was_asked_for() -> None:
    asked = failure(429, retry_after_s=1.0)
    assert again_after_s("get", failure(500), tries=1, random=0.0) == 0.5 * PAUSES_S[0]
    assert again_after_s("get", failure(500), tries=1, random=1.0) == 1.5 * PAUSES_S[0]
    assert again_after_s("get", asked, tries=1, random=0.0) == 1.0 + 0.5 * PAUSES_S[0]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A client and what it did."""

    kube: KubeClient
    requests: list[str]
    """The method of each request that reached the apiserver."""
    pauses_s: list[float]
    counted: list[tuple[str, str]]
    """Verb and status of each request, as the metric counts them."""


@asynccontextmanager
async def apiserver(tmp_path: Path, statuses: Sequence[int], *, patient: bool = True) -> AsyncIterator[Scene]:
    """Answers with these, one after the other, and then well; 0 = the connection is cut."""
    requests: list[str] = []
    pauses_s: list[float] = []
    counted: list[tuple[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        requests.append(request.method)
        status = statuses[len(requests) - 1] if len(requests) <= len(statuses) else 200
        if status == 0 and request.transport is not None:
            request.transport.abort()
        return web.json_response({"items": []}, status=status or 200)

    async def pause(seconds: float) -> None:
        pauses_s.append(seconds)

    async with answering(handle) as (_, port):
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        config = {"clusters": [cluster], "users": [{"name": "u", "user": {}}], "contexts": [context]}
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **config}))
        async with connect(
            str(file),
            timeout_s=5.0,
            on_request=lambda verb, code: counted.append((verb, code)),
            patience=Patience(random=lambda: MIDDLE, pause=pause) if patient else None,
        ) as kube:
            yield Scene(kube=kube, requests=requests, pauses_s=pauses_s, counted=counted)


async def test_a_list_is_answered_after_two_failures_and_each_request_is_counted(tmp_path: Path) -> None:
    async with apiserver(tmp_path, [503, 500]) as scene:
        assert await scene.kube.list_all(PODS, "n") == []
    assert scene.pauses_s == list(PAUSES_S)
    assert scene.counted == [("list", "503"), ("list", "500"), ("list", "200")]


async def test_a_third_failure_is_final(tmp_path: Path) -> None:
    async with apiserver(tmp_path, [503, 503, 502]) as scene:
        with pytest.raises(ApiError) as caught:
            await scene.kube.get(PODS, "n", "p")
    assert caught.value.status == 502
    assert len(scene.requests) == 3


async def test_a_read_whose_connection_was_cut_is_sent_again(tmp_path: Path) -> None:
    async with apiserver(tmp_path, [0]) as scene:
        assert await scene.kube.list_all(PODS, "n") == []
    assert "200" in {code for _, code in scene.counted}


async def test_a_write_is_never_sent_again(tmp_path: Path) -> None:
    async with apiserver(tmp_path, [503]) as scene:
        with pytest.raises(ApiError):
            await scene.kube.patch(PODS, "n", "p", {})
    assert scene.requests == ["PATCH"]


async def test_a_client_without_patience_gives_up_at_once(tmp_path: Path) -> None:
    async with apiserver(tmp_path, [503], patient=False) as scene:
        with pytest.raises(ApiError):
            await scene.kube.list_all(PODS, "n")
    assert scene.requests == ["GET"]
