"""How deep the objects may be nested that this process reads.

An apiserver keeps whatever somebody nests into `spec.template.spec`, up to ten thousand levels. Python gives up at a
thousand, and a single such object would make every list and every watch fail in which it stands.
"""

from __future__ import annotations

import sys
import threading

LEVELS = 12_000
"""A little more than an apiserver takes, for what calls the parser stands in the same count."""
STACK_BYTES = 16 * 1024 * 1024
"""For threads: the parser takes 200 bytes for each level."""


def read_what_an_apiserver_keeps() -> None:
    """Called once, before the first thread begins."""
    sys.setrecursionlimit(LEVELS)
    threading.stack_size(STACK_BYTES)
