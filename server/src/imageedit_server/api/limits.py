"""What this server takes of a request's fields."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_server.api.prompts import CountTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this server takes: from its settings, and from the model that is loaded.

    `max_references` counts all pictures of an edit. `files`: results can be kept as files. `count_tokens` of a text is
    None where this process cannot count them.
    """

    model_name: str
    steps: int
    steps_high: int
    max_references: int = 1
    edit: bool = True
    mask_required: bool = False
    max_prompt_tokens: int = 1024
    count_tokens: CountTokens | None = None
    guidance: bool = False
    negative_prompt: bool = False
    generate: bool = False
    files: bool = False
