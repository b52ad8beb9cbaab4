"""Debian's Chromium and what the snippets on the page need: found, or installed by root before the first test."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from localcluster import hosttools
from localcluster.errors import LocalClusterError

# Program -> package; each is named alike.
PROGRAMS = ("chromium", "curl", "jq")
# No sandbox, since CI runs as root in a container; no service of the browser's own asks the network for anything.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def install_missing(session: pytest.Session) -> None:
    """Install what is missing, or end the session with one line that says what to install."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    say = reporter.write_line if reporter is not None else print
    try:
        with tempfile.TemporaryDirectory(prefix="imageedit-browser-") as folder:
            hosttools.install(missing, say, log=Path(folder) / "apt.log")
    except LocalClusterError as error:
        pytest.exit(f"the page cannot be tested: {error}", returncode=1)
    if left := [name for name in missing if shutil.which(name) is None]:
        pytest.exit(f"the page cannot be tested: as root run: apt-get install {' '.join(left)}", returncode=1)


def path() -> str:
    """The browser's program."""
    found = shutil.which("chromium")
    assert found is not None
    return found
