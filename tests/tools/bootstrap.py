"""Makes the project's virtual environment; run by make, with the standard library only.

The environment lives outside the checkout, in a folder named after the interpreter and
the requirement files, so that every checkout with the same pins shares it and a changed
pin makes a new one.

    python3 tests/tools/bootstrap.py path [NAME]      print the folder
    python3 tests/tools/bootstrap.py ensure [NAME]    make it if it is not whole, then print it

Without a name it is the one that everything runs in. NAME is a file in requirements/extra: an environment beside it,
for programs that cannot live with our pins, such as the servers that ours is measured against.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
OLDEST_PYTHON = (3, 11)


def cache_dir() -> Path:
    """The folder for everything that outlives a checkout."""
    return Path(os.environ.get("IMAGEEDIT_CACHE") or Path.home() / ".cache" / "imageedit")


def requirement_file(name: str) -> Path:
    """What pip installs for this environment."""
    file = REQUIREMENTS / "extra" / f"{name}.txt" if name else REQUIREMENTS / "dev.txt"
    if not file.is_file():
        fail(f"there is no {file.relative_to(ROOT)}")
    return file


def venv_dir(name: str = "") -> Path:
    """The environment that fits this interpreter and these requirement files."""
    digest = hashlib.sha256()
    for file in [requirement_file(name)] if name else sorted(REQUIREMENTS.glob("*.txt")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_dir() / f"venv-{version}-{name + '-' if name else ''}{digest.hexdigest()[:12]}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> None:
    say(f"error: {text}")
    sys.exit(1)


def need_venv_module() -> None:
    """Debian splits ensurepip off into python3-venv."""
    if (
        subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
        == 0
    ):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        fail(f"this Python cannot make virtual environments; install it with: apt-get install {package}")
    say(f"installing {package} ...")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False, stdout=sys.stderr)
    done = subprocess.run(["apt-get", "install", "-y", "-qq", package], env=environment, check=False, stdout=sys.stderr)
    if done.returncode != 0:
        fail(f"apt-get install {package} failed; install it by hand")


def make(folder: Path, requirements: Path) -> None:
    """Create the environment and install every pin; the stamp is written last."""
    need_venv_module()
    shutil.rmtree(folder, ignore_errors=True)
    started = time.monotonic()
    size = "" if requirements.parent.name == "extra" else "torch alone is several gigabytes, "
    say(f"making {folder} (once; {size}takes minutes) ...")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, stdout=sys.stderr)
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--progress-bar",
        "off",
    ]
    with subprocess.Popen(
        [*pip, "-r", str(requirements)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        tail: list[str] = []
        for line in process.stdout:
            tail = [*tail[-30:], line]
            if line.startswith(("Collecting torch", "Collecting nvidia", "Installing collected")):
                say(f"  [{time.monotonic() - started:4.0f} s] {line.strip()[:100]}")
    if process.returncode != 0:
        say("".join(tail))
        fail(f"pip could not install {requirements.relative_to(ROOT)}; the lines above say why")
    (folder / ".complete").write_text("")
    say(f"environment ready after {time.monotonic() - started:.0f} s")


def ensure(name: str = "") -> Path:
    """The complete environment; one process makes it, others wait for its lock."""
    folder = venv_dir(name)
    if (folder / ".complete").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            make(folder, requirement_file(name))
    return folder


def main() -> None:
    if sys.version_info < OLDEST_PYTHON:
        fail(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: make PYTHON=/path/to/python3.11 ...")
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    name = sys.argv[2] if len(sys.argv) > 2 else ""
    if command == "path":
        print(venv_dir(name))
    elif command == "ensure":
        print(ensure(name))
    else:
        fail("usage: bootstrap.py path [NAME] | ensure [NAME]")


if __name__ == "__main__":
    main()
