"""Collect the facts. Nothing here raises because something is missing: that is for the rules to judge."""

import glob
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from imageedit_server.doctor.facts import Facts, Folder, ModelFolder, Node, Trial
from imageedit_server.engine.checkpoint import DEMO, MANIFEST_NAME, check_checkpoint, resolve_model_dir
from imageedit_server.worker.failures import WorkerError

_PACKAGES = ("torch", "torch_npu", "torchvision", "diffusers", "transformers", "accelerate", "safetensors")
_MANAGERS = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
_DRIVER = "/usr/local/Ascend/driver"
_CANN_HOMES = ("/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann", "/usr/local/Ascend/latest")
_VERSION_LINE = re.compile(r"^version\s*=\s*\[?([^\]\s]+)", re.I | re.M)
_TRIAL_WITHIN_S = 180


def gather(*, device: str, model_dir: str | None, environ: Mapping[str, str], root: Path = Path("/")) -> Facts:
    """Look at this machine; `root` stands before every fixed path, for tests."""
    return Facts(
        device=device,
        python=(sys.version_info.major, sys.version_info.minor, sys.version_info.micro),
        packages={name: version for name in _PACKAGES if (version := _package(name))},
        cann=_cann(environ, root),
        driver=_version_in(_under(root, f"{_DRIVER}/version.info")),
        driver_libraries=_under(root, f"{_DRIVER}/lib64").is_dir(),
        environment={name: value for name, value in environ.items() if name.startswith(("ASCEND_", "PYTORCH_"))},
        cards=_nodes(sorted(glob.glob(f"{_under(root, '/dev')}/davinci[0-9]*")), root),
        managers=_nodes([str(path) for name in _MANAGERS if (path := _under(root, name)).exists()], root),
        folders=_folders(device, environ),
        host_memory_bytes=_host_memory_bytes(root),
        trial=_trial(device),
        model=_model(model_dir) if model_dir else None,
    )


def _under(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cann(environ: Mapping[str, str], root: Path) -> str:
    told = environ.get("ASCEND_TOOLKIT_HOME")
    homes = [Path(told)] if told else [_under(root, home) for home in _CANN_HOMES]
    for home in homes:
        for path in sorted(glob.glob(f"{home}/*-linux/ascend_*_install.info")):
            if version := _version_in(Path(path)):
                return version
    return ""


def _version_in(path: Path) -> str:
    try:
        found = _VERSION_LINE.search(path.read_text(errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""


def _nodes(paths: list[str], root: Path) -> tuple[Node, ...]:
    return tuple(
        Node(path=f"/{Path(path).relative_to(root)}", usable=os.access(path, os.R_OK | os.W_OK)) for path in paths
    )


def _folders(device: str, environ: Mapping[str, str]) -> tuple[Folder, ...]:
    home = environ.get("HOME", "/")
    wanted = [(tempfile.gettempdir(), "uploads and libraries"), (home, "logs and caches of libraries")]
    if device == "npu":
        cache = environ.get("ASCEND_CACHE_PATH")
        work = environ.get("ASCEND_WORK_PATH")
        wanted += [
            (work or os.getcwd(), "kernel_meta of CANN"),
            (
                environ.get("ACL_OP_COMPILER_CACHE_DIR") or (f"{cache}/kernel_cache" if cache else f"{home}/atc_data"),
                "compiled operators",
            ),
            (
                environ.get("ASCEND_PROCESS_LOG_PATH") or (f"{work}/log" if work else f"{home}/ascend/log"),
                "logs of CANN",
            ),
        ]
    return tuple(Folder(path=path, use=use, writable=_writable(Path(path))) for path, use in wanted)


def _writable(folder: Path) -> bool:
    """Whether files can be made in it; one that is not there yet is made in the first one above that is."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _host_memory_bytes(root: Path) -> int:
    """What this container may use: the smaller of its limit and what is free on the node."""
    available = 0
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", _under(root, "/proc/meminfo").read_text(), re.M)
        available = int(found[1]) * 1024 if found else 0
        limit = _under(root, "/sys/fs/cgroup/memory.max").read_text().strip()
        return min(available, int(limit)) if limit.isdigit() else available
    except OSError:
        return available


def _trial(device: str) -> Trial:
    command = [sys.executable, "-m", "imageedit_server.engine.trial", device]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=_TRIAL_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        return Trial(error=f"the device gave no answer within {_TRIAL_WITHIN_S} s; check it with npu-smi on the node")
    lines = done.stdout.splitlines()
    try:
        return Trial(**json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError):
        return Trial(error=f"the trial on the device ended with {done.returncode}; its output stands above")


def _model(model_dir: str) -> ModelFolder:
    folder = resolve_model_dir(model_dir)
    try:
        pipeline = check_checkpoint(folder)
    except WorkerError as error:
        return ModelFolder(path=str(folder), error=error.failure.message)
    return ModelFolder(
        path=str(folder),
        pipeline=pipeline,
        weights_bytes=sum(path.stat().st_size for path in folder.rglob("*.safetensors")),
        manifest=(folder / MANIFEST_NAME).is_file(),
        bundled=model_dir == DEMO,
    )
