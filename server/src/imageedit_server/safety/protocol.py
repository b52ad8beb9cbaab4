"""The messages between the API process and the classifier's process. Frozen, picklable, free of torch."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierSettings:
    """A folder as `save_pretrained` writes it, the labels that refuse, and from which score on."""

    folder: str
    labels: tuple[str, ...]
    threshold: float
    log_level: str = "info"
    pod: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A picture to look at: raw RGB."""

    number: int
    width_px: int
    height_px: int
    rgb: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierReady:
    """The classifier is loaded and has looked at one picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a look: `refused`, or None where it failed and nothing is known."""

    number: int
    refused: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotClassify:
    """The classifier's last word: no process with these settings can serve."""

    message: str


ToApi = ClassifierReady | Verdict | CannotClassify
