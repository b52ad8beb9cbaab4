"""A subset of regular expressions that cannot run away: every match ends after a known number of steps.

Python's engine tries alternatives one after the other, and `(a+)+b` makes it try for ever. Here repetitions are
bounded, and the number of ways in which an expression can match from one place is counted beforehand and limited. What
the counter does not understand is refused, so nothing gets past it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# From each place of a prompt.
MAX_WAYS = 2_000
MAX_REPEAT = 1_000

_BOUNDS = re.compile(r"\{(\d{1,4})(?:,(\d{1,4}))?\}")
_ESCAPE = re.compile(r"\\([bBdDsSwW]|[^\w\s])")
# What Python may read as sets of sets one day.
_UNCLEAR = re.compile(r"(?<!\\)\[|--|&&|~~|\|\|")
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A compiled expression, and in how many ways it can match from one place."""

    pattern: re.Pattern[str]
    ways: int


def expression(text: str) -> Expression:
    """Compile an expression; case does not matter.

    Raises:
        ValueError: it is wrong, or uses what is not taken; the message says what to write instead.
    """
    counter = _Counter(text)
    ways = counter.alternatives()
    if counter.at < len(text):
        raise ValueError("a ) closes nothing")
    try:
        return Expression(pattern=re.compile(text, re.IGNORECASE), ways=ways)
    except re.error as error:
        # The error's own text quotes the line.
        raise ValueError(f"it is no regular expression (character {(error.pos or 0) + 1})") from None


class _Counter:
    """Reads an expression from left to right and counts the ways."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def alternatives(self) -> int:
        """`a|b|c` up to its end or a closing bracket: the ways add up."""
        ways = self._sequence()
        while self._take("|"):
            ways = _limited(ways + self._sequence())
        return ways

    def _sequence(self) -> int:
        """Parts in a row: the ways multiply."""
        ways = 1
        while self.at < len(self._text) and self._text[self.at] not in "|)":
            ways = _limited(ways * self._repeated(self._part()))
        return ways

    def _part(self) -> int:
        if self._take("("):
            if self._take("?") and not self._take(":"):
                raise ValueError("of groups only ( ) and (?: ) are taken")
            ways = self.alternatives()
            if not self._take(")"):
                raise ValueError("a ( is not closed")
            return ways
        for kind in (_ESCAPE, _SET):
            found = kind.match(self._text, self.at)
            if found is not None:
                if _UNCLEAR.search(found[0], 1):
                    raise ValueError("within [ ] write [ and doubled - & ~ | with a \\ before them")
                self.at = found.end()
                return 1
        if self._text[self.at] in "\\[":
            raise ValueError("of escapes only \\b \\d \\s \\w, their capitals and signs are taken, and sets in [ ]")
        if self._text[self.at] in "*+":
            raise ValueError("* and + are not taken; give a limit, such as {0,50}")
        if self._text[self.at] in "?{":
            raise ValueError(
                f"nothing stands before the {self._text[self.at]}; write \\{self._text[self.at]} for the sign"
            )
        self.at += 1
        return 1

    def _repeated(self, ways: int) -> int:
        """What a repetition makes of the ways of its part: for each count, the part's ways in a row."""
        fewest, most = self._bounds()
        total, power = 0, 1
        for count in range(most + 1):
            if count >= fewest:
                total = _limited(total + power)
            power = min(power * ways, MAX_WAYS + 1)
        if self.at < len(self._text) and self._text[self.at] in "*+{":
            raise ValueError("* and + are not taken, nor two repetitions in a row; give one limit, such as {0,50}")
        return total

    def _bounds(self) -> tuple[int, int]:
        if self._take("?"):
            return 0, 1
        found = _BOUNDS.match(self._text, self.at)
        if found is None:
            return 1, 1
        self.at = found.end()
        self._take("?")  # as few as possible first: the ways are the same
        fewest, most = int(found[1]), int(found[2] or found[1])
        if most > MAX_REPEAT or fewest > most:
            raise ValueError(f"a repetition has limits up to {MAX_REPEAT}, the lower one first")
        return fewest, most

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self.at):
            return False
        self.at += 1
        return True


def _limited(ways: int) -> int:
    if ways > MAX_WAYS:
        raise ValueError(
            f"it can match in more than {MAX_WAYS} ways from one place; use smaller limits, or several lines"
        )
    return ways
