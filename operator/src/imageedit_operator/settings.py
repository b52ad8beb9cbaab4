"""Settings of the operator: flags, and `IMAGEEDIT_OPERATOR_<FLAG>`; the flag wins."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from imageedit_operator.core.accelerator import AUTO_INJECTIONS, AutoInjection
from imageedit_operator.core.election import Timing
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
    """Seconds between two lists of the versions of all resources and their children."""
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
    leader_elect: bool = True
    """Act only while holding the Lease; off: act at once, whoever else does."""
    lease_name: str = "imageedit-operator"
    lease_namespace: str = ""
    """Empty = the pod's own namespace, `default` outside of a pod."""
    auto: AutoInjection = field(default_factory=AutoInjection)
    """How pods get at cards whose resource leaves it to the operator."""
    timing: Timing = field(default_factory=Timing)
    """How fast a Lease is renewed and taken over."""


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
        leader_elect=_one_of("leader-elect", arguments.leader_elect, ("on", "off")) == "on",
        lease_name=_name("lease-name", arguments.lease_name),
        lease_namespace=_name("lease-namespace", arguments.lease_namespace) if arguments.lease_namespace else "",
        auto=AutoInjection(
            injection=_one_of("auto-injection", arguments.auto_injection, AUTO_INJECTIONS),
            runtime_class=_runtime_class(arguments.runtime_class),
        ),
        timing=_timing(arguments),
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
    flag("resync", "120", "seconds between two lists of the versions of all resources and their children")
    flag("kubeconfig", "", "path of a kubeconfig, empty for the pod's service account")
    flag("http-port", "8080", "port of /healthz and /metrics")
    flag("log-level", "info", "one of " + ", ".join(LOG_LEVELS))
    flag("reconcile-timeout", "60", "seconds that one pass over one resource may take")
    flag("request-timeout", "30", "seconds that one request to the apiserver may take")
    flag("shutdown", "20", "seconds that running passes may take to finish after SIGTERM")
    flag("leader-elect", "on", "on: act only while holding the Lease; off: act at once")
    flag("lease-name", "imageedit-operator", "name of the Lease that the replicas of one installation share")
    flag("lease-namespace", "", "namespace of the Lease, empty for the pod's own")
    flag("auto-injection", "Runtime", "what accelerator.injection Auto stands for: " + ", ".join(AUTO_INJECTIONS))
    flag(
        "runtime-class", "", "RuntimeClass of pods with injection Runtime that name none, empty for the node's default"
    )
    flag("lease-duration", "15", "seconds after which a Lease that is not renewed may be taken")
    flag("renew-deadline", "10", "seconds without a renewal after which the holder stops acting")
    flag("retry-period", "2", "seconds between two renewals of the Lease")
    return parser


def _timing(arguments: argparse.Namespace) -> Timing:
    timing = Timing(
        lease_s=_number("lease-duration", arguments.lease_duration, low=1, high=600),
        renew_deadline_s=_number("renew-deadline", arguments.renew_deadline, low=0.5, high=600),
        retry_s=_number("retry-period", arguments.retry_period, low=0.1, high=60),
    )
    if not timing.lease_s > timing.renew_deadline_s >= 2 * timing.retry_s:
        raise SettingsInvalid(
            "--lease-duration must be longer than --renew-deadline, and that at least twice --retry-period: "
            "else two operators could act at once, or one late answer would cost the Lease"
        )
    return timing


def _name(flag: str, text: str) -> str:
    if not (0 < len(text) <= 63 and all(ch.isascii() and (ch.isdigit() or ch.islower() or ch == "-") for ch in text)):
        raise SettingsInvalid(f"--{flag}: {text!r} is not a name: at most 63 lower-case letters, digits and dashes")
    return text


def _runtime_class(text: str) -> str:
    if not re.fullmatch(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?", text):
        raise SettingsInvalid(f"--runtime-class: {text!r} is not the name of a RuntimeClass")
    return text


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
    for one in allowed:
        if text.lower() == one.lower():
            return one
    raise SettingsInvalid(f"--{name}: {text!r} is not one of {', '.join(allowed)}")
