"""The web page at `/`: plain files from the package, answered before the keys are asked for, since they hold no secret.

The page calls the API as any client does; it knows nothing that a client cannot ask for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER = Path(__file__).resolve().parents[1] / "page"
INDEX = "index.html"
PREFIX = "/page/"
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

# Pictures are shown from memory (blob:). Nothing comes from elsewhere, goes elsewhere, or stands inline, so that
# neither a prompt nor a file name can become code, and no other page can wrap this one.
SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    # Kept, and asked for again each time: all files of a page must be of one version.
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file, and the tag of its bytes."""

    data: bytes = field(repr=False)
    media_type: str
    etag: str


class Page:
    """Answers GET and HEAD at `/` and below `/page/`, and hands everything else on."""

    def __init__(self, app: ASGIApp, folder: Path = FOLDER) -> None:
        self._app = app
        # Read once: no path of a request ever reaches the file system.
        self._files = page_files(folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self._file(scope)
        if file is None:
            await self._app(scope, receive, send)
            return
        await answer(file, Headers(scope=scope).get("if-none-match", ""))(scope, receive, send)

    def _file(self, scope: Scope) -> PageFile | None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return None
        path: str = scope["path"]
        if path == "/":
            return self._files[INDEX]
        return self._files.get(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None


def page_files(folder: Path) -> dict[str, PageFile]:
    """All files of the page by name."""
    return {path.name: _read(path) for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES}


def answer(file: PageFile, if_none_match: str) -> Response:
    """The file, or 304 for a browser that has it."""
    headers = HEADERS | {"etag": file.etag}
    # A proxy that compresses marks the tag as weak.
    known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    if file.etag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.data, media_type=file.media_type, headers=headers)


def _read(path: Path) -> PageFile:
    data = path.read_bytes()
    return PageFile(data=data, media_type=MEDIA_TYPES[path.suffix], etag=f'"{hashlib.sha256(data).hexdigest()[:32]}"')
