"""`python -m imageedit_server`, and the console script `imageedit-server`."""

from __future__ import annotations

import asyncio
import os
import sys

from imageedit_server import logs
from imageedit_server.errors import FailureReason, SettingsInvalid
from imageedit_server.lifecycle import Ending, report, serve
from imageedit_server.settings import settings_from, termination_log_path


def main() -> int:
    """Serve until told to end; the exit code is the contract's."""
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
