"""`imageedit-server prefetch SOURCE TARGET`: a verified copy of a checkpoint near the card, without a card."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from imageedit_server import setting_values
from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.errors import SettingsInvalid
from imageedit_server.prefetch.failures import EXIT_CODES, CannotCopy, Failure
from imageedit_server.prefetch.local_copy import Order, copy_checkpoint
from imageedit_server.prefetch.pruning import remove_others
from imageedit_server.settings import termination_log_path

MOST_RESERVE_PERCENT = 90
READABLE_BY_ALL = 0o022
"""The server that reads the copy is another user than the one that makes it."""


def run(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Make the copy and print its digest, or say what is in the way and return its exit code."""
    os.umask(READABLE_BY_ALL)
    # As process 1 of a container it would not hear SIGTERM otherwise, and be killed half a minute later.
    signal.signal(signal.SIGTERM, _stop)
    try:
        asked = _parser().parse_args(list(arguments))
        order = _order(asked)
        if asked.remove_others:
            keep = frozenset(asked.keep.split(","))
            remove_others(order.target, prefix=asked.remove_others, keep=keep, say=_say)
        print(copy_checkpoint(order, say=_say, clock=time.monotonic), flush=True)
    except SettingsInvalid as error:
        return _report(Failure.SETTINGS_INVALID, str(error), environ)
    except CannotCopy as error:
        return _report(error.failure, error.message, environ)
    return 0


class _Parser(argparse.ArgumentParser):
    """argparse ends the process with code 2 by itself; the contract wants 64 and a reason."""

    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid(f"{message}; --help lists the arguments")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="imageedit-server prefetch",
        description="Copies a checkpoint file by file, holds each to the manifest on the way, goes on where an earlier"
        " try broke off, and shows the folder when it is whole. Files that are right already are not copied again.",
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SOURCE", help="folder of the checkpoint")
    parser.add_argument("target", metavar="TARGET", help="folder to make; its parents are made, too")
    parser.add_argument("--manifest-digest", default="", help="digest that SOURCE must have, sha256:...")
    parser.add_argument(
        "--keep-free", type=int, default=0, metavar="PERCENT", help="part of TARGET's disk that stays free (default 0)"
    )
    parser.add_argument(
        "--remove-others", default="", metavar="PREFIX", help="first remove folders beside TARGET that begin with this"
    )
    parser.add_argument("--keep", default="", metavar="NAME,NAME", help="folders that --remove-others leaves alone")
    return parser


def _order(asked: argparse.Namespace) -> Order:
    if not 0 <= asked.keep_free <= MOST_RESERVE_PERCENT:
        raise SettingsInvalid(f"--keep-free {asked.keep_free} is not between 0 and {MOST_RESERVE_PERCENT}")
    source, target = resolve_model_dir(asked.source).resolve(), Path(os.path.abspath(asked.target))
    if target == source or source in target.parents or target in source.parents:
        raise SettingsInvalid(f"{target} and {source} lie within each other; name a folder outside of the checkpoint")
    return Order(
        source=source,
        target=target,
        expected_digest=setting_values.digest(asked.manifest_digest),
        reserve_percent=asked.keep_free,
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _stop(number: int, _frame: object) -> NoReturn:
    os.write(sys.stderr.fileno(), b"stopped; the next try goes on here\n")  # print may be under way right now
    sys.exit(128 + number)


def _report(failure: Failure, message: str, environ: Mapping[str, str]) -> int:
    """To the log, and where Kubernetes looks for it; outside of a container that file does not exist."""
    line = f"{failure.value}: {' '.join(message.split())}"
    print(line, file=sys.stderr)
    with contextlib.suppress(OSError):
        Path(termination_log_path(environ)).write_text(f"{line}\n", encoding="utf-8")
    return EXIT_CODES[failure]
