"""An event loop whose clock jumps to the next timer: waiting takes no time and is exact."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for its timeout, moves the clock by it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        if not ready and timeout is None:
            raise AssertionError("every task waits for something that never comes")
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _JumpingSelector) -> None:
        super().__init__(selector)
        self._virtual = selector

    def time(self) -> float:
        return self._virtual.now

    def freeze(self, seconds: float) -> None:
        self._virtual.now += seconds


def virtual_loop() -> asyncio.SelectorEventLoop:
    """A fresh loop on a virtual clock that starts at 0, for tests that step it by hand; close it."""
    return _VirtualLoop(_JumpingSelector())


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs `main()` on a fresh virtual clock that starts at 0."""
    loop = _VirtualLoop(_JumpingSelector())
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def now() -> float:
    """The running loop's virtual time in seconds."""
    return asyncio.get_running_loop().time()


def stand_still(seconds: float) -> None:
    """The process does not run for so long, as when it is frozen with its container or its machine."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _VirtualLoop)
    loop.freeze(seconds)
