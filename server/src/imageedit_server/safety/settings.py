"""What of the settings is about safety."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from imageedit_server.errors import SettingsInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetySettings:
    """Nothing is set: nothing is looked at. See `arguments.ARGUMENTS` for the meaning of each."""

    denylist: str = ""
    classifier: str = ""
    labels: tuple[str, ...] = ()
    threshold: float = 0.5


# | --safety-classifier | --safety-labels | verdict                      |
# | ------------------- | --------------- | ---------------------------- |
# | none                | none            | pictures are not looked at   |
# | none                | some            | refused: nothing to label    |
# | given               | none            | refused: nothing would be    |
# | given               | some            | pictures are looked at       |
def safety_settings(given: Mapping[str, str]) -> SafetySettings:
    """The part of the settings.

    Raises:
        SettingsInvalid: a value is out of range, or one is missing beside another.
    """
    labels = tuple(label.strip() for label in given["safety-labels"].split(",") if label.strip())
    classifier = given["safety-classifier"]
    if classifier and not labels:
        raise SettingsInvalid(
            "--safety-labels is empty; name the labels of --safety-classifier that refuse, as its config.json has them"
        )
    if labels and not classifier:
        raise SettingsInvalid("--safety-labels has no effect without --safety-classifier; give its folder")
    return SafetySettings(
        denylist=given["prompt-denylist"],
        classifier=classifier,
        labels=labels,
        threshold=_threshold(given["safety-threshold"]),
    )


def _threshold(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise SettingsInvalid(f"--safety-threshold {text!r} is not a number above 0, up to 1")
    return value
