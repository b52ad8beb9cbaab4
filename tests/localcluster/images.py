"""Images without builds: a few folders and an entrypoint; the programs come from the host by read-only mounts.

containerd gives every container of the default runtime the mounts of `host_mounts`
(through its base runtime spec), so a pod names an image and nothing more,
and changed code needs a new pod, not a new image.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcluster.network import run
from localcluster.paths import CHECKOUT, Layout

INSIDE = "/opt/imageedit"
PYTHON = f"{INSIDE}/venv/bin/python"
SOURCES = ("operator/src", "server/src")
PAUSE = "imageedit.local/pause:dev"
PASSWD = "root:x:0:0:root:/root:/bin/sh\nimageedit:x:65532:65532::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
GROUP = "root:x:0:\nimageedit:x:65532:\nnogroup:x:65534:\n"
USR_LINKS = ("bin", "sbin", "lib", "lib64", "lib32", "libx32")
"""Links to folders below /usr on today's systems: the image repeats them instead of mounting."""
NAMESPACE = "k8s.io"


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """One image: its name, what it runs, its environment, and programs that it really holds."""

    name: str
    entrypoint: tuple[str, ...]
    env: tuple[str, ...] = ()
    files: tuple[tuple[str, Path], ...] = ()


def images(pause: Path) -> list[Image]:
    """All images of the local cluster."""
    quiet = (
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",
        "PYTHONUNBUFFERED=1",
        "PYTHONDONTWRITEBYTECODE=1",
        "HOME=/tmp",
    )
    return [
        Image(name=PAUSE, entrypoint=("/pause",), files=(("pause", pause),)),
        Image(name="imageedit.local/python:dev", entrypoint=(PYTHON,), env=quiet),
        Image(
            name="imageedit.local/server:dev",
            entrypoint=(PYTHON, "-m", "imageedit_server"),
            env=(*quiet, f"PYTHONPATH={INSIDE}/server/src"),
        ),
        # For tests about time and load: the card is held for a moment, nothing is computed.
        Image(
            name="imageedit.local/server-stub:dev",
            entrypoint=(PYTHON, "-m", "imageedit_server"),
            env=(*quiet, f"PYTHONPATH={INSIDE}/server/src", "IMAGEEDIT_STUB_EDIT_SECONDS=0.5"),
        ),
        Image(
            name="imageedit.local/operator:dev",
            entrypoint=(PYTHON, "-m", "imageedit_operator"),
            env=(*quiet, f"PYTHONPATH={INSIDE}/operator/src"),
        ),
    ]


def host_mounts(venv: Path) -> list[dict[str, Any]]:
    """The read-only mounts of every container: system, interpreter, virtual environment, the checkout's sources."""
    pairs = [(Path("/usr"), "/usr")]
    pairs += [
        (Path("/", name), f"/{name}")
        for name in USR_LINKS
        if Path("/", name).is_dir() and not Path("/", name).is_symlink()
    ]
    for file in ("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ld.so.cache", "/etc/alternatives"):
        if Path(file).exists():
            pairs.append((Path(file), file))
    base = base_python(venv)
    if not base.is_relative_to("/usr"):
        pairs.append((base, str(base)))
    pairs.append((venv, f"{INSIDE}/venv"))
    pairs += [(CHECKOUT / source, f"{INSIDE}/{source}") for source in SOURCES]
    return [
        {"destination": inside, "type": "bind", "source": str(outside), "options": ["rbind", "ro", "nosuid", "nodev"]}
        for outside, inside in pairs
    ]


def base_python(venv: Path) -> Path:
    """The installation that a virtual environment was made from."""
    config = venv / "pyvenv.cfg"
    if config.exists():
        for line in config.read_text().splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                return Path(value.strip()).parent
    return Path(sys.base_prefix)


def write_runtime_spec(layout: Layout, venv: Path) -> Path:
    """containerd's own default spec with the host mounts added."""
    spec = json.loads(run("ctr", "oci", "spec"))
    spec["mounts"] += host_mounts(venv)
    file = layout.config / "runtime-spec.json"
    file.write_text(json.dumps(spec))
    return file


def load(layout: Layout, pause: Path) -> None:
    """Give all images to containerd."""
    for image in images(pause):
        archive = layout.config / f"{image.name.rpartition('/')[2].replace(':', '-')}.tar"
        write_archive(archive, image)
        run(
            "ctr",
            "--address",
            str(layout.containerd_socket),
            "--namespace",
            NAMESPACE,
            "images",
            "import",
            str(archive),
        )
        archive.unlink()


def write_archive(file: Path, image: Image) -> None:
    """An OCI archive with one layer."""
    layer = layer_of(image)
    config = _json(
        {
            "architecture": _architecture(),
            "os": "linux",
            "config": {"Entrypoint": list(image.entrypoint), "Env": list(image.env), "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    named = _descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    index = {"schemaVersion": 2, "manifests": [{**named, "annotations": {"io.containerd.image.name": image.name}}]}
    with tarfile.open(file, "w") as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        for blob in (layer, config, manifest):
            _add(archive, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob)
        _add(archive, "index.json", _json(index))


def layer_of(image: Image) -> bytes:
    """The files of an image as a tar: mount points, accounts, /tmp, and the links into /usr that the host has."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in _folders(
            ("usr", "etc/ssl/certs", "etc/alternatives", "proc", "sys", "dev", "root", "run", "var/tmp")
        ):
            _add_folder(layer, folder)
        _add_folder(layer, "tmp", mode=0o1777)
        for source in ("venv", *SOURCES):
            for folder in _folders((f"{INSIDE[1:]}/{source}",)):
                _add_folder(layer, folder)
        for name in USR_LINKS:
            if Path("/", name).is_symlink():
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
                layer.addfile(link)
        _add(layer, "etc/passwd", PASSWD.encode())
        _add(layer, "etc/group", GROUP.encode())
        for name, source_file in image.files:
            _add(layer, name, source_file.read_bytes(), mode=0o755)
    return buffer.getvalue()


def _folders(paths: Sequence[str]) -> list[str]:
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "."}
    return sorted(parents | set(paths))


def _add_folder(archive: tarfile.TarFile, name: str, *, mode: int = 0o755) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    archive.addfile(entry)


def _add(archive: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}


def _architecture() -> str:
    machine = run("uname", "-m").strip()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
