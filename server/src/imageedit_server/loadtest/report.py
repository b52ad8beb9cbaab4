"""A sweep as text for people and as JSON for programs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from imageedit_server.loadtest.statistics import Level, may_grow, plateau

SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
BAR_CHARACTERS = 40
COLUMNS = "{:>7}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>7}  {:>6}".format(
    "clients", "edits/s", "p50 s", "p95 s", "p99 s", "answered", "refused", "failed"
)


def row(level: Level) -> str:
    """One line of the table under `COLUMNS`."""
    latencies = "  ".join(f"{_number(level.latency_s(share)):>8}" for share in SHARES.values())
    cut = "" if level.whole else "  (cut short)"
    return (
        f"{level.concurrency:>7}  {_number(level.throughput_per_s):>8}  {latencies}"
        f"  {level.answered:>8}  {level.refused_count:>7}  {level.failed_count:>6}{cut}"
    )


def as_text(levels: Sequence[Level]) -> str:
    """What follows the table: bars, reasons, plateau."""
    parts = [
        _bars("edits/s", [(level.concurrency, level.throughput_per_s) for level in levels]),
        _bars("p95 s", [(level.concurrency, level.latency_s(SHARES["p95"])) for level in levels]),
        _reasons("refused", [level.refused for level in levels]),
        _reasons("failed", [level.failed for level in levels]),
        verdict(levels),
    ]
    return "\n\n".join(part for part in parts if part)


def verdict(levels: Sequence[Level]) -> str:
    """The plateau in a sentence."""
    found = plateau(levels)
    if found is None:
        return "No edit was answered, so there is no plateau."
    text = f"Plateau at {found.concurrency} clients: {_number(found.throughput_per_s)} edits/s."
    if may_grow(levels):
        return f"{text} No level with more clients was measured; try a larger --concurrency."
    return f"{text} The most that was seen is {_number(found.capacity_per_s)} edits/s; more clients only wait longer."


def as_json(url: str, levels: Sequence[Level]) -> dict[str, object]:
    """Everything that was measured; `docs/reference/loadtest.md` describes it."""
    found = plateau(levels)
    return {
        "url": url,
        "levels": [_level(level) for level in levels],
        "plateau": None
        if found is None
        else {
            "concurrency": found.concurrency,
            "throughput_per_s": round(found.throughput_per_s, 4),
            "may_grow": may_grow(levels),
        },
        "capacity_per_s": None if found is None else round(found.capacity_per_s, 4),
    }


def _level(level: Level) -> dict[str, object]:
    latencies = {name: level.latency_s(share) for name, share in SHARES.items()}
    return {
        "concurrency": level.concurrency,
        "elapsed_s": round(level.elapsed_s, 3),
        "whole": level.whole,
        "answered": level.answered,
        "throughput_per_s": round(level.throughput_per_s, 4),
        "latency_s": {name: None if value is None else round(value, 4) for name, value in latencies.items()},
        "refused": dict(level.refused),
        "failed": dict(level.failed),
    }


def _bars(title: str, values: Sequence[tuple[int, float | None]]) -> str:
    longest = max((value for _, value in values if value is not None), default=0.0)
    if longest <= 0:
        return ""
    lines = [title]
    for concurrency, value in values:
        bar = "#" * round(BAR_CHARACTERS * (value or 0.0) / longest)
        lines.append(f"{concurrency:>7}  {bar} {_number(value)}")
    return "\n".join(lines)


def _reasons(title: str, counted: Sequence[Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return "\n".join(f"{title}: {count} {reason}" for reason, count in total.most_common())


def _number(value: float | None) -> str:
    """Three digits that count: 0.0421, 2.25, 31.4, 512."""
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
