"""What a prompt may be: its characters, and its tokens before it waits for the card.

The tokens are counted in this process, by the tokenizer alone: asking the worker would mean to wait for its edit, and
a text that is refused only at its turn has waited for nothing. The package `tokenizers`, which every installation of
transformers brings, reads the checkpoint's own file and loads no torch. Where the file is not there the worker's own
check is left. Most prompts need no counting: byte-level tokens have at least one byte, so a text of no more bytes than
tokens are taken surely fits. A Chinese character has three bytes and one token or less, so long Chinese prompts, which
a bound by bytes would refuse, are counted.
"""

from __future__ import annotations

import contextlib
import logging
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

from imageedit_server.api.fields import MAX_PROMPT_CHARACTERS
from imageedit_server.errors import InvalidInput
from imageedit_server.logs import fields

log = logging.getLogger("imageedit.prompts")

CONTROL_TOKEN = re.compile(r"<\|[a-z0-9_]{1,40}\|>")
# Published checkpoints have the whole tokenizer as one file in one of these, or in both.
TOKENIZER_FILES = ("tokenizer/tokenizer.json", "processor/tokenizer.json")

CountTokens = Callable[[str], int]


def checked_prompt(prompt: str) -> str:
    """The prompt without white space around it."""
    prompt = prompt.strip()
    if not prompt:
        raise InvalidInput(
            "The prompt is empty; say what to change in the picture.", code="empty_prompt", param="prompt"
        )
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise InvalidInput(
            f"The prompt has {len(prompt)} characters; at most {MAX_PROMPT_CHARACTERS} are taken.",
            code="prompt_too_long",
            param="prompt",
        )
    return without_control_tokens(prompt, "prompt")


def without_control_tokens(text: str, param: str) -> str:
    """The text, unless it holds a token that steers the model: `<|image_pad|>` would stand for a picture."""
    if (found := CONTROL_TOKEN.search(text)) is not None:
        raise InvalidInput(
            f"{param} holds {found.group()}, a control token of the model; leave it out.",
            code="control_token",
            param=param,
        )
    return text


def check_tokens(text: str, param: str, *, limit: int, count: CountTokens) -> None:
    """Refuse a text of more tokens than the model takes. Blocking: it takes milliseconds for the longest."""
    if _bytes(text) <= limit:
        return
    tokens = count(text)
    if tokens > limit:
        raise InvalidInput(
            f"{param} has {tokens} tokens; at most {limit} are taken. Say it in fewer words.",
            code="prompt_too_long",
            param=param,
        )


def token_count(model_dir: Path) -> CountTokens | None:
    """The count of a checkpoint's tokenizer; None where it cannot be had.

    Blocking, and for half a second with a vocabulary of 150,000: call it before anything is served.
    """
    # What the file system refuses is the worker's to refuse too.
    with contextlib.suppress(OSError):
        path = next((model_dir / name for name in TOKENIZER_FILES if (model_dir / name).is_file()), None)
        return None if path is None else _count_of(path)
    return None


def _count_of(path: Path) -> CountTokens | None:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # it raises no narrower class; a checkpoint that is broken is the worker's to refuse
        log.warning("tokenizer_unreadable", extra=fields(path=str(path), error=str(error)))
        return None
    return lambda text: len(tokenizer.encode(text).ids)


def _bytes(text: str) -> int:
    # The tokenizer composes characters first, which can make a few of them longer.
    return len(unicodedata.normalize("NFC", text).encode())
