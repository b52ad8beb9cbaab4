"""`make images` really builds both images here, from a base that it makes itself, and what is in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcluster import hosttools
from localcluster.errors import LocalClusterError

ROOT = Path(__file__).resolve().parents[2]
SECRET_FILES = ("/run/secrets", "/src")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of a container store of the test's own, with both images in it."""
    if os.geteuid() != 0:
        pytest.skip("a base is made with debootstrap, which needs root")
    try:
        hosttools.ensure(print, log=tmp_path_factory.mktemp("tools") / "apt.log")
    except LocalClusterError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("images")
    conf = folder / "storage.conf"
    conf.write_text(f'[storage]\ndriver = ""\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
    environment = dict(os.environ, CONTAINERS_STORAGE_CONF=str(conf), BUILDER="buildah", BUILDAH_ISOLATION="chroot")
    # The engine is gigabytes of torch, which the cluster tests exercise from the virtual environment.
    build = dict(environment, ENGINE_REQUIREMENTS="", TAG="test")
    done = subprocess.run([ROOT / ".ci/images"], env=build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    yield environment
    subprocess.run(["buildah", "rmi", "--all", "--force"], env=environment, capture_output=True, check=False)
    unmount_below(folder)
    shutil.rmtree(folder)


def unmount_below(folder: Path) -> None:
    """The overlay driver leaves a mount of its own folder onto itself."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((mount for mount in mounts if Path(mount).is_relative_to(folder)), reverse=True):
        subprocess.run(["umount", mount], check=True)


def buildah(store: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(["buildah", *arguments], env=store, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", params=["operator", "server"])
def container(request: pytest.FixtureRequest, store: dict[str, str]) -> Iterator[str]:
    """A working container of each image; nothing runs in it by itself."""
    name = buildah(store, "from", "--pull-never", f"localhost/imageedit-{request.param}:test")
    yield name
    buildah(store, "rm", name)


def test_an_image_runs_as_a_user_without_a_name_and_starts_by_itself(store: dict[str, str], container: str) -> None:
    config: dict[str, Any] = json.loads(buildah(store, "inspect", container))["OCIv1"]["config"]
    assert config["User"] == "65532:65532"
    assert not config.get("Cmd")
    assert "usage: imageedit-" in buildah(store, "run", container, "--", *config["Entrypoint"], "--help")


def test_an_image_holds_the_program_and_neither_sources_nor_secrets(store: dict[str, str], container: str) -> None:
    kind = "operator" if "operator" in container else "server"
    python = "/opt/imageedit/bin/python"
    code = f"import imageedit_{kind} as m, pathlib; print(pathlib.Path(m.__file__).parent)"
    assert buildah(store, "run", container, "--", python, "-c", code).endswith(f"site-packages/imageedit_{kind}")
    for folder in SECRET_FILES:
        files = buildah(store, "run", container, "--", "sh", "-c", f"find {folder} -type f 2>/dev/null || true")
        assert files == ""
