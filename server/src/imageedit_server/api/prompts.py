"""What a prompt may be."""

from __future__ import annotations

import re

from imageedit_server.api.fields import MAX_PROMPT_CHARACTERS
from imageedit_server.errors import InvalidInput

CONTROL_TOKEN = re.compile(r"<\|[a-z0-9_]{1,40}\|>")


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
