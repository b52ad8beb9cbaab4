"""Somebody at the page: what tests do again and again, in the words of the page."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import httpx
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, FileChooser, FilePayload, Request, expect

from server.running import RunningServer, encoded

# The machine of CI is slow and loaded.
PATIENCE_MS = 60_000


class Visitor:
    """A page in a profile of its own.

    Args:
        options: of the browser's context, such as `color_scheme` and `viewport`.
        refused: statuses of answers that the test expects; the browser reports each in its console.
    """

    def __init__(
        self,
        browser: Browser,
        server: RunningServer,
        *,
        refused: tuple[int, ...] = (),
        **options: Any,
    ) -> None:
        self._refused = refused
        self._context = browser.new_context(**options)
        self._context.set_default_timeout(PATIENCE_MS)
        self._pending: list[Request] = []
        self._choosers: list[FileChooser] = []
        self._server = server
        self.complaints: list[str] = []
        self.page = self._context.new_page()
        self.page.on("console", self._console)
        # From the start: asked for only when a key is pressed, the key can overtake it, and no chooser is ever seen.
        self.page.on("filechooser", self._file_chooser)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("requestfinished", self._answered)
        self.page.on("requestfailed", self._answered)

    def arrive(self, *, wait: bool = True) -> None:
        """Open the page, and wait until it knows the model."""
        self.page.goto(self._server.api + "/")
        if wait:
            expect(self.page.locator("#model")).not_to_be_empty(timeout=PATIENCE_MS)

    def standing(self) -> str:
        """What a failed test says of the page besides what it waited for."""
        lines = [f"console: {text}" for text in self.complaints]
        lines += [f"no answer yet: {one.method} {one.url}" for one in self._pending]
        lines.append(f"file choosers opened: {len(self._choosers)}")
        lines += [f"#{name}: {self.page.locator(f'#{name}').text_content()}" for name in ("model", "problem", "status")]
        with contextlib.suppress(httpx.HTTPError):
            lines.append(f"server: {self._server.health()}")
        return "\n".join(lines)

    def leave(self) -> None:
        """Close the profile."""
        self._context.close()

    def choose(self, image: Image.Image | bytes, name: str = "before.png") -> None:
        """Choose a picture, as from the file picker."""
        data = image if isinstance(image, bytes) else encoded(image)
        self.page.set_input_files("#file", file(data, name))
        expect(self.page.locator("#stage")).to_have_attribute("data-view", "picture", timeout=PATIENCE_MS)
        expect(self.page.locator("#facts")).to_contain_text(name, timeout=PATIENCE_MS)

    def ask(self, prompt: str, *, steps: int | None = None, seed: int | None = None, size: str | None = None) -> None:
        """Fill the form in."""
        self.page.get_by_label("What to change").fill(prompt)
        if steps is not None:
            self.page.get_by_role("radio", name="Custom").check()
            self.page.locator("#steps").fill(str(steps))
        if seed is not None:
            self.page.get_by_label("Seed", exact=True).fill(str(seed))
        if size is not None:
            self.page.get_by_label("Size", exact=True).select_option(size)

    def run(self) -> None:
        """Press the button."""
        self.page.get_by_role("button", name="Edit picture").click()

    def result(self) -> bytes:
        """Wait for the result that was asked for, and download it."""
        expect(self.page.locator("#status")).to_contain_text("Done", timeout=PATIENCE_MS)
        with self.page.expect_download() as download:
            self.page.get_by_role("link", name="Download").click()
        return download.value.path().read_bytes()

    def picture(self) -> Image.Image:
        """As `result`, decoded."""
        return Image.open(io.BytesIO(self.result())).convert("RGB")

    def says(self, text: str, at: str = "#status") -> None:
        """Wait until the page says something."""
        expect(self.page.locator(at)).to_contain_text(text, timeout=PATIENCE_MS)

    def drag_on_mask(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag over the picture, by parts of its sides."""
        canvas = self.page.locator("#mask")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"], steps=8)
        self.page.mouse.up()

    def _file_chooser(self, chooser: FileChooser) -> None:
        self._choosers.append(chooser)

    def _asked(self, request: Request) -> None:
        self._pending.append(request)

    def _answered(self, request: Request) -> None:
        self._pending.remove(request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if any(f"status of {status}" in message.text for status in self._refused):
            return
        self.complaints.append(f"{message.type}: {message.text}")


def file(data: bytes, name: str = "before.png") -> FilePayload:
    """A file for the file picker."""
    return {"name": name, "mimeType": "image/png", "buffer": data}
