"""The doctor against a made-up node, and as a command on this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from imageedit_server.doctor.gather import gather
from server.checkpoints import tiny_checkpoint
from server.running import SOURCE


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The files of a container with one card and CANN."""
    files = {
        "dev/davinci5": "",
        "dev/davinci_manager": "",
        "dev/devmm_svm": "",
        "usr/local/Ascend/driver/version.info": "Version=25.2.0\nascendhal_version=7.35\n",
        "usr/local/Ascend/driver/lib64/common/libx.so": "",
        "usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info": (
            "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\ninnerversion=V100R001\n"
        ),
        "proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   2048 kB\n",
        "sys/fs/cgroup/memory.max": "1048576\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_versions_cards_and_memory_are_read_from_where_they_are_mounted(node: Path) -> None:
    found = gather(device="cpu", model_dir=None, environ={"HOME": str(node)}, root=node)
    assert (found.cann, found.driver, found.driver_libraries) == ("8.3.RC1", "25.2.0", True)
    assert [card.path for card in found.cards] == ["/dev/davinci5"]
    assert [manager.path for manager in found.managers] == ["/dev/davinci_manager", "/dev/devmm_svm"]
    assert found.host_memory_bytes == 1048576
    assert found.packages["torch"]
    assert found.trial.matmul_s is not None


def test_an_empty_machine_is_no_error(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "ASCEND_CACHE_PATH": str(tmp_path / "cache"), "SECRET": "x"}
    found = gather(device="npu", model_dir=None, environ=environ, root=tmp_path)
    assert (found.cann, found.driver, found.driver_libraries, found.cards) == ("", "", False, ())
    assert "torch_npu cannot be imported" in found.trial.error
    assert str(tmp_path / "cache" / "kernel_cache") in [folder.path for folder in found.folders]
    assert "SECRET" not in found.environment


def test_a_folder_that_cannot_be_made_is_not_writable() -> None:
    found = gather(device="cpu", model_dir=None, environ={"HOME": "/proc/nowhere"})
    assert {folder.path: folder.writable for folder in found.folders}["/proc/nowhere"] is False


def doctor(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "imageedit_server", "doctor", *arguments],
        env={"PYTHONPATH": str(SOURCE), "HOME": "/tmp"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_the_command_is_content_with_the_processor_and_the_demo_model() -> None:
    done = doctor("--model-dir", "demo")
    assert done.returncode == 0, done.stdout
    assert "a matrix product on cpu" in done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}


def test_the_command_ends_with_one_and_names_what_is_wrong(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path, class_name="Other")
    done = doctor("--model-dir", str(folder), "-o", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert [finding["name"] for finding in report["findings"] if finding["level"] == "fail"] == ["model"]
