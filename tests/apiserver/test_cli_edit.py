"""`kubectl imageedit edit`: a real server behind the proxy of a real API server, and straight to its address."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from apiserver.cli_process import Ran, cli
from apiserver.operator_plane import client, create_resource, new_namespace, plane, pod
from apiserver.operator_pods import report_running
from imageedit_operator.kube.client import KubeClient
from imageedit_operator.kube.kinds import PODS, SERVICES, Resource
from localcluster.controlplane import ControlPlane
from server.running import RunningServer, stub_server

__all__ = ["plane"]

ENDPOINTS = Resource(group="", version="v1", plural="endpoints")
BIG_PX = 2600
"""Sides of a picture of noise that is 20 MB as PNG."""


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--host", "0.0.0.0", edit_s=0.3) as running:
        yield running


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One that wants a key."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("sesame\n")
    with stub_server("--host", "0.0.0.0", "--api-keys-file", str(keys)) as running:
        yield running


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A small picture."""
    file = tmp_path / "in.png"
    Image.new("RGB", (96, 64), (200, 40, 40)).save(file)
    return file


def kind_and_size(file: Path) -> tuple[str | None, tuple[int, int]]:
    """What a picture file is."""
    with Image.open(file) as image:
        return image.format, image.size


def own_address() -> str:
    """An address of this machine that the API server forwards to: it refuses loopback ones."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback, and the API server forwards to none of these")
        address: str = probe.getsockname()[0]
    return address


async def served(plane: ControlPlane, port: int | None) -> str:
    """A namespace with the resource `edit` and its Service, whose only pod listens on this port; None: has no pod."""
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        await create_resource(kube, namespace)
        metadata = {"name": "edit"}
        named = {"name": "api", "port": 80, "targetPort": port or 8000}
        await kube.create(SERVICES, namespace, {"kind": "Service", "metadata": metadata, "spec": {"ports": [named]}})
        subsets = [] if port is None else [await with_pod(kube, namespace, port)]
        # What the controller of endpoints would write; the API server forwards to nothing but pods.
        await kube.create(ENDPOINTS, namespace, {"kind": "Endpoints", "metadata": metadata, "subsets": subsets})
    return namespace


async def with_pod(kube: KubeClient, namespace: str, port: int) -> dict[str, Any]:
    """A pod at an address of this machine, as Endpoints name it."""
    ip = own_address()
    await kube.create(PODS, namespace, pod("edit-1", node="node-1"))
    await report_running(kube, namespace, "edit-1", ip, ready=True)
    target = {"kind": "Pod", "name": "edit-1", "namespace": namespace}
    return {"addresses": [{"ip": ip, "targetRef": target}], "ports": [{"name": "api", "port": port}]}


async def edited(plane: ControlPlane, namespace: str, image: Path, *flags: str) -> Ran:
    return await cli(plane, "edit", str(image), "make it blue", "-n", namespace, *flags)


async def test_a_picture_goes_through_the_api_server_and_comes_back_edited(
    plane: ControlPlane, server: RunningServer, picture: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.webp"
    namespace = await served(plane, server.port)

    ran = await edited(plane, namespace, picture, "-o", str(out), "--size", "original", "--seed", "7")

    assert ran.code == 0, ran.err
    assert kind_and_size(out) == ("WEBP", (96, 64))
    assert ran.out.startswith(f"{out}: 96x64")
    assert "seed 7" in ran.out


async def test_a_picture_of_20_megabytes_fits_through_the_api_server(
    plane: ControlPlane, server: RunningServer, tmp_path: Path
) -> None:
    big, out = tmp_path / "big.png", tmp_path / "out.png"
    data = io.BytesIO()
    Image.frombytes("RGB", (BIG_PX, BIG_PX), os.urandom(3 * BIG_PX * BIG_PX)).save(data, "PNG", compress_level=0)
    big.write_bytes(data.getvalue())
    assert big.stat().st_size > 20_000_000

    ran = await edited(plane, await served(plane, server.port), big, "-o", str(out), "-o", "json", "--size", "original")

    assert ran.code == 0, ran.err
    assert ran.document()["size"] == f"{BIG_PX}x{BIG_PX}"
    assert kind_and_size(out) == ("PNG", (BIG_PX, BIG_PX))


async def test_a_refusal_of_the_server_is_its_own_sentence(
    plane: ControlPlane, server: RunningServer, picture: Path
) -> None:
    ran = await edited(plane, await served(plane, server.port), picture, "--size", "huge")

    assert ran.code == 1
    assert "size" in ran.err
    assert not picture.with_name("in-edited.png").exists()


async def test_a_service_without_a_pod_is_not_ready(plane: ControlPlane, picture: Path) -> None:
    ran = await edited(plane, await served(plane, None), picture)

    assert ran.code == 4
    assert "kubectl imageedit status" in ran.err


async def test_a_server_with_keys_is_told_how_to_reach(
    plane: ControlPlane, locked: RunningServer, picture: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("# mine\nsesame\n")
    straight = ("--url", locked.api, "--api-key-file", str(key), "-o", str(tmp_path / "out.png"))

    proxied = await edited(plane, await served(plane, locked.port), picture)
    direct = await edited(plane, "default", picture, *straight)

    assert proxied.code == 1
    assert "kubectl port-forward" in proxied.err
    assert direct.code == 0, direct.err


async def test_an_address_needs_no_cluster(server: RunningServer, picture: Path, tmp_path: Path) -> None:
    ran = await cli(tmp_path / "absent", "edit", str(picture), "make it blue", "--url", f"{server.api}/v1")

    assert ran.code == 0, ran.err
    assert picture.with_name("in-edited.png").exists()


async def test_an_address_where_nobody_listens_fails_in_one_sentence(picture: Path, tmp_path: Path) -> None:
    ran = await cli(tmp_path / "absent", "edit", str(picture), "make it blue", "--url", "http://127.0.0.1:1")

    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1


async def test_the_only_resource_of_a_namespace_needs_no_name_and_several_do(
    plane: ControlPlane, picture: Path
) -> None:
    namespace = await served(plane, None)
    async with client(plane) as kube:
        await create_resource(kube, namespace, "other")
        nothing = await new_namespace(kube)

    several = await edited(plane, namespace, picture)
    none = await edited(plane, nothing, picture)
    unknown = await edited(plane, nothing, picture, "--service", "nobody")

    assert (several.code, none.code, unknown.code) == (2, 3, 3)
    assert "edit, other" in several.err


async def test_a_result_is_not_written_over_a_file_and_the_cluster_is_not_asked(tmp_path: Path, picture: Path) -> None:
    there = tmp_path / "there.png"
    there.write_text("mine")

    ran = await cli(tmp_path / "absent", "edit", str(picture), "make it blue", "-o", str(there))

    assert ran.code == 2
    assert "--force" in ran.err
    assert there.read_text() == "mine"
