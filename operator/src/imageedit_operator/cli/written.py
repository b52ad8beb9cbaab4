"""What a command that writes says about it: the same JSON document for all of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from imageedit_operator.cli.documents import as_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The outcome of a write; `changed` is False where it was so already."""

    namespace: str
    name: str
    command: str
    changed: bool
    message: str
    revision: str = ""
    """Hash of the revision that the spec asks for now, where the command is about it."""
    managed_by: str = ""
    """Who else writes the resource, such as `Flux Kustomization apps`."""


def show(outcome: Written, *, advice: str, json: bool) -> None:
    """The sentence to stdout; advice to stderr, where it disturbs no script."""
    if json:
        print(as_text(outcome))
        return
    print(outcome.message)
    if outcome.changed and advice:
        sys.stdout.flush()
        print(advice, file=sys.stderr)
