"""Console script `kubectl-imageedit`, which kubectl runs as `kubectl imageedit`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Sequence

from imageedit_operator import nesting
from imageedit_operator.cli import arguments, edit, history, pause, plan, promote, restart, rollback, status
from imageedit_operator.cli.exits import CommandFailed, Exit, from_api
from imageedit_operator.cli.screen import screen_for
from imageedit_operator.cli.session import Place, Session, session
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.errors import ApiError

INTERRUPTED = 130
"""What shells use for Ctrl-C."""


def main(words: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one return an end
    """The exit code. What goes wrong is one sentence on stderr, never a stack trace."""
    asked = arguments.parse(sys.argv[1:] if words is None else words)
    debugging = bool(os.environ.get("IMAGEEDIT_DEBUG"))
    if not debugging:
        logging.disable(logging.CRITICAL)  # libraries would put their own words among ours
    nesting.read_what_an_apiserver_keeps()
    try:
        code = asyncio.run(_run(asked))
        sys.stdout.flush()
        return code
    except CommandFailed as error:
        return _refused(error)
    except ApiError as error:
        return _refused(from_api(error))
    except InvalidResource as error:
        return _refused(CommandFailed(Exit.FAILED, f"The spec of the resource cannot be read: {error}. Correct it."))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except Exception as error:
        if debugging:
            raise
        words_of = f"This is a defect of kubectl-imageedit: {error!r}. Please report it, with IMAGEEDIT_DEBUG=1 set."
        return _refused(CommandFailed(Exit.FAILED, words_of))


async def _run(asked: argparse.Namespace) -> Exit:
    if asked.command == "edit":  # it may do without a cluster
        return await edit.run(asked)
    place = Place(kubeconfig=asked.kubeconfig, context=asked.context, namespace=asked.namespace)
    async with session(place) as opened:
        return await _command(asked, opened)


async def _command(asked: argparse.Namespace, opened: Session) -> Exit:  # noqa: PLR0911 - one return a command
    columns = shutil.get_terminal_size().columns
    screen = screen_for(terminal=sys.stdout.isatty(), columns=columns, environment=os.environ)
    match asked.command:
        case "status":
            everywhere = asked.all_namespaces
            return await status.run(opened, asked.name, everywhere=everywhere, json=asked.json, screen=screen)
        case "history":
            return await history.run(opened, asked.name, json=asked.json, screen=screen)
        case "plan":
            where = asked.namespace
            return await plan.run(opened, asked.filename, asked_namespace=where, json=asked.json, screen=screen)
        case "rollback":
            return await rollback.run(opened, asked.name, to=asked.to, json=asked.json)
        case "pause" | "resume":
            return await pause.run(opened, asked.name, paused=asked.command == "pause", json=asked.json)
        case "promote":
            return await promote.run(opened, asked.name, json=asked.json)
        case _:
            return await restart.run(opened, asked.name, json=asked.json)


def _refused(error: CommandFailed) -> int:
    sys.stdout.flush()
    print(f"error: {error.message}", file=sys.stderr)
    return int(error.code)


if __name__ == "__main__":
    sys.exit(main())
