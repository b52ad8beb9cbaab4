"""Settings of the operator: flags, and `IMAGEEDIT_OPERATOR_<FLAG>`; the flag wins."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from imageedit_operator.errors import SettingsInvalid

LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Everything that can be set from outside, with its defaults."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to serve; empty = the whole cluster."""
    workers: int = 8
    """Resources that are reconciled at the same time."""
    resync_s: float = 120.0
    """Seconds between two full lists of the resources."""
    kubeconfig: str = ""
    """Path of a kubeconfig; empty = the pod's service account, else the default kubeconfig."""
    http_port: int = 8080
    """Port of `/healthz` and `/metrics`; 0 = any free port."""
    log_level: str = "info"
    reconcile_timeout_s: float = 60.0
    """Longest time one pass over one resource may take."""
    request_timeout_s: float = 30.0
    """Longest time of one request to the apiserver."""
    shutdown_s: float = 20.0
    """How long running passes may finish after SIGTERM."""


def load(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line and the environment. Raises SettingsInvalid; `--help` exits."""
    arguments = _parser(environ).parse_args(list(argv))
    settings = Settings(
        namespaces=_namespaces(arguments.namespaces),
        workers=_integer("workers", arguments.workers, low=1, high=64),
        resync_s=_number("resync", arguments.resync, low=1, high=3600),
        kubeconfig=arguments.kubeconfig,
        http_port=_integer("http-port", arguments.http_port, low=0, high=65535),
        log_level=_one_of("log-level", arguments.log_level, LOG_LEVELS),
        reconcile_timeout_s=_number("reconcile-timeout", arguments.reconcile_timeout, low=1, high=600),
        request_timeout_s=_number("request-timeout", arguments.request_timeout, low=1, high=300),
        shutdown_s=_number("shutdown", arguments.shutdown, low=0, high=300),
    )
    if settings.request_timeout_s > settings.reconcile_timeout_s:
        raise SettingsInvalid(
            "--request-timeout is longer than --reconcile-timeout: no pass could wait for one request"
        )
    return settings


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="imageedit-operator",
        description="Operates ImageEditDeployment resources. Every flag can be set as IMAGEEDIT_OPERATOR_<FLAG>.",
        allow_abbrev=False,
    )

    def flag(name: str, default: str, text: str) -> None:
        variable = "IMAGEEDIT_OPERATOR_" + name.upper().replace("-", "_")
        parser.add_argument(f"--{name}", default=environ.get(variable, default), help=f"{text} (default: {default!r})")

    flag("namespaces", "", "comma list of namespaces to serve, empty for the whole cluster")
    flag("workers", "8", "resources that are reconciled at the same time")
    flag("resync", "120", "seconds between two full lists of the resources")
    flag("kubeconfig", "", "path of a kubeconfig, empty for the pod's service account")
    flag("http-port", "8080", "port of /healthz and /metrics")
    flag("log-level", "info", "one of " + ", ".join(LOG_LEVELS))
    flag("reconcile-timeout", "60", "seconds that one pass over one resource may take")
    flag("request-timeout", "30", "seconds that one request to the apiserver may take")
    flag("shutdown", "20", "seconds that running passes may take to finish after SIGTERM")
    return parser


def _namespaces(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not all(ch.isascii() and (ch.isdigit() or ch.islower() or ch == "-") for ch in name) or len(name) > 63:
            raise SettingsInvalid(f"--namespaces: {name!r} is not a namespace name; patterns are not supported")
    return names


def _number(name: str, text: str, *, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SettingsInvalid(f"--{name}: {text!r} is not a number") from None
    if not math.isfinite(value) or not low <= value <= high:
        raise SettingsInvalid(f"--{name}: {text} is not between {low:g} and {high:g}")
    return value


def _integer(name: str, text: str, *, low: int, high: int) -> int:
    value = _number(name, text, low=low, high=high)
    if value != int(value):
        raise SettingsInvalid(f"--{name}: {text} is not a whole number")
    return int(value)


def _one_of(name: str, text: str, allowed: Sequence[str]) -> str:
    if text.lower() not in allowed:
        raise SettingsInvalid(f"--{name}: {text!r} is not one of {', '.join(allowed)}")
    return text.lower()
