"""`python -m imageedit_server`, and the console script `imageedit-server`.

The first argument may name another command than serving: see `COMMANDS`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

from imageedit_server import logs
from imageedit_server.commands import doctor, loadtest, manifest, prefetch
from imageedit_server.errors import FailureReason, SettingsInvalid
from imageedit_server.lifecycle import Ending, report, serve
from imageedit_server.settings import settings_from, termination_log_path

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "doctor": doctor.run,
    "loadtest": loadtest.run,
    "manifest": manifest.run,
    "prefetch": prefetch.run,
}


def main() -> int:
    """Run the command that the first argument names, else serve until told to end; the exit code is the contract's."""
    command = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    return _serve() if command is None else command(sys.argv[2:])


def _serve() -> int:
    logs.set_up(level="info", pod=os.environ.get("IMAGEEDIT_POD", ""))
    try:
        settings = settings_from(sys.argv[1:], os.environ)
        logs.set_up(level=settings.log_level, pod=settings.pod)
        ending = asyncio.run(serve(settings))
    except SettingsInvalid as error:
        ending = Ending(reason=FailureReason.SETTINGS_INVALID.value, message=str(error))
    report(ending, termination_log_path(os.environ))
    return ending.code


if __name__ == "__main__":
    sys.exit(main())
