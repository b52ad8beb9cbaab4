"""Builds the programs of the local cluster before the first test: it takes minutes, which are no test's own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcluster import binaries
from localcluster.errors import LocalClusterError


def build_programs(session: pytest.Session, folder: Path) -> None:
    """Build what is not cached, if tests of that folder are going to run."""
    wanted = any(item.path.is_relative_to(folder) for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    try:
        binaries.ensure(binaries.WHOLE_CLUSTER, reporter.write_line if reporter is not None else print)
    except LocalClusterError as error:
        pytest.exit(f"the programs of the local cluster cannot be built: {error}", returncode=1)
