"""Words, phrases and expressions that a prompt must not hold. Pure: text in, verdict out.

A prompt is compared as people read it, not as it is coded: compatibility forms, case, runs of white space and
invisible characters make no difference. Accents do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from imageedit_server.safety.expressions import Expression, expression

MAX_LINES = 10_000
MAX_LINE_CHARACTERS = 500
# All expressions together: half a second at worst, for a prompt that was made for it.
MAX_ALL_WAYS = 20_000
# A prompt has 4000. Compatibility forms can unfold, and one that doubles in length is none of a person.
MAX_TEXT_CHARACTERS = 8_000
EXPRESSION_PREFIX = "re:"

# Scripts that put no space between words, so that a word has no edges there: Thai, Lao, Burmese, Khmer, kana, Han
# and its extensions, and Hangul, which hangs particles on its words.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD_CHARACTER = re.compile(rf"[^\W_{_SPACELESS}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denylist:
    """What is refused; never shown, since the list can be as offensive as what it keeps out."""

    literals: tuple[str, ...] = field(repr=False)
    expressions: tuple[Expression, ...] = field(repr=False)

    @property
    def count(self) -> int:
        """How many lines refuse something."""
        return len(self.literals) + len(self.expressions)

    def refuses(self, prompt: str) -> bool:
        """Whether the prompt holds something of the list, or is too long to be looked at once it is unfolded."""
        text = normalised(prompt)
        if len(text) > MAX_TEXT_CHARACTERS:
            return True
        return any(_holds(text, literal) for literal in self.literals) or any(
            one.pattern.search(text) for one in self.expressions
        )


# | line           | is                                                                |
# | -------------- | ----------------------------------------------------------------- |
# | blank, `# ...` | nothing                                                           |
# | `re:...`       | an expression, looked for in the normalised prompt                |
# | `two words`    | that phrase, as whole words where its script has spaces           |
# | `\#tag`        | the phrase `#tag`                                                 |
def parsed(text: str) -> Denylist:
    """Read the text of a list.

    Raises:
        ValueError: a line is wrong, there are too many, or none; the message names the line's number, not its text.
    """
    literals: list[str] = []
    expressions: list[Expression] = []
    for number, line in _lines(text):
        try:
            if line.startswith(EXPRESSION_PREFIX):
                expressions.append(expression(line.removeprefix(EXPRESSION_PREFIX).strip()))
            else:
                literals.append(_literal(line.removeprefix("\\") if line.startswith("\\#") else line))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not literals and not expressions:
        raise ValueError("it holds no line that refuses anything; leave the setting out to refuse nothing")
    if sum(one.ways for one in expressions) > MAX_ALL_WAYS:
        raise ValueError(f"all expressions together can match in more than {MAX_ALL_WAYS} ways; use smaller limits")
    return Denylist(literals=tuple(dict.fromkeys(literals)), expressions=tuple(expressions))


def normalised(text: str) -> str:
    """The text as it is compared."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    visible = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return " ".join(visible.split())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > MAX_LINES:
        raise ValueError(f"it has {len(lines)} lines; at most {MAX_LINES} are taken")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise ValueError(f"line {number}: it has more than {MAX_LINE_CHARACTERS} characters")
        if line and not line.startswith("#"):
            yield number, line


def _literal(line: str) -> str:
    literal = normalised(line)
    if not literal:
        raise ValueError("nothing of it is visible")
    return literal


def _holds(text: str, literal: str) -> bool:
    return any(
        _is_edge(text, start - 1, literal[0]) and _is_edge(text, start + len(literal), literal[-1])
        for start in _found(text, literal)
    )


def _found(text: str, literal: str) -> Iterable[int]:
    start = text.find(literal)
    while start >= 0:
        yield start
        start = text.find(literal, start + 1)


def _is_edge(text: str, beside: int, last: str) -> bool:
    """Whether a word may end here: one of a script with spaces must not go on beside its last character."""
    if not 0 <= beside < len(text) or not _WORD_CHARACTER.fullmatch(last):
        return True
    return not _WORD_CHARACTER.fullmatch(text[beside])
