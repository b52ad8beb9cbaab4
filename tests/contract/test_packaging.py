"""What the two distributions hold, read from wheels built from this tree."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=["operator", "server"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, zipfile.ZipFile]:
    """A wheel of each distribution."""
    folder = tmp_path_factory.mktemp(request.param)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT / request.param,
        check=True,
        capture_output=True,
    )
    (file,) = folder.glob("*.whl")
    return request.param, zipfile.ZipFile(file)


def test_a_wheel_has_its_console_script_and_its_types(wheel: tuple[str, zipfile.ZipFile]) -> None:
    name, archive = wheel
    (entry_points,) = [member for member in archive.namelist() if member.endswith("entry_points.txt")]
    scripts = configparser.ConfigParser()
    scripts.read_string(archive.read(entry_points).decode())

    plugin = {"kubectl-imageedit": "imageedit_operator.cli.__main__:main"} if name == "operator" else {}
    assert dict(scripts["console_scripts"]) == {f"imageedit-{name}": f"imageedit_{name}.__main__:main", **plugin}
    assert f"imageedit_{name}/py.typed" in archive.namelist()


def test_the_server_s_wheel_brings_the_demo_checkpoint(wheel: tuple[str, zipfile.ZipFile]) -> None:
    name, archive = wheel
    held = {member for member in archive.namelist() if "demo_checkpoint/" in member}
    source = ROOT / "server" / "src" / "imageedit_server"
    wanted = {
        str(file.relative_to(source.parent)) for file in (source / "demo_checkpoint").rglob("*") if file.is_file()
    }

    assert held == (wanted if name == "server" else set())


def test_the_server_s_wheel_brings_the_web_page(wheel: tuple[str, zipfile.ZipFile]) -> None:
    name, archive = wheel
    held = {member for member in archive.namelist() if "/page/" in member}
    folder = ROOT / "server" / "src" / "imageedit_server" / "page"

    assert held == ({f"imageedit_server/page/{file.name}" for file in folder.iterdir()} if name == "server" else set())


@pytest.mark.parametrize("folder", ["operator", "server"])
def test_a_top_level_folder_is_no_package(folder: str) -> None:
    """An `operator` package at the root would shadow the standard library's."""
    assert not (ROOT / folder / "__init__.py").exists()


def test_requirement_files_hold_plain_pins_and_no_address() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        for line in file.read_text().splitlines():
            text = line.partition("#")[0].strip()
            assert re.fullmatch(r"|-[cr] [\w.]+\.txt|[\w.-]+==[\w.+]+", text), f"{file.name}: {line}"
