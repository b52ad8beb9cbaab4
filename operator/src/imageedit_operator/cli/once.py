"""A status for people: what one fault says in many places is said in full once. Pure."""

from __future__ import annotations

from dataclasses import replace

from imageedit_operator.cli.status_view import StatusView

AGAIN = "as above"

LONG = 40
"""Characters from which words are worth saying once."""


# | the words                                   | are shown as             |
# | short                                       | they are                 |
# | first of their kind                         | they are                 |
# | said before, alone or within others         | as above                 |
# | of others that were said before, with more  | as above, with the more  |
class _Said:
    """What was said so far, in the order of the screen."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def once(self, words: str) -> str:
        """The words, without what was said before."""
        if len(words) < LONG:
            return words
        if any(words in said for said in self._words):
            return AGAIN
        shown = words
        for said in sorted(self._words, key=len, reverse=True):
            shown = shown.replace(said, AGAIN)
        self._words.append(words)
        return shown


def shortened(view: StatusView) -> StatusView:
    """The view, read from above: its summary, bad conditions, pods, decisions."""
    said = _Said()
    summary = said.once(view.summary)
    conditions = tuple(
        replace(item, message=said.once(item.message)) if item.level == "bad" else item for item in view.conditions
    )
    revisions = tuple(
        replace(item, pods=tuple(replace(pod, trouble=said.once(pod.trouble)) for pod in item.pods))
        for item in view.revisions
    )
    decisions = tuple(replace(item, message=said.once(item.message)) for item in view.decisions)
    return replace(view, summary=summary, conditions=conditions, revisions=revisions, decisions=decisions)
