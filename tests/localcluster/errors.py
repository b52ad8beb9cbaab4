"""The one error of the package."""

from __future__ import annotations


class LocalClusterError(Exception):
    """The cluster cannot be brought up or used; the text is one line that says what to install or do."""
