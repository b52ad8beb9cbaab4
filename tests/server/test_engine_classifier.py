"""The classifier itself, in this process: its scores, and the folders that it refuses to load."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from imageedit_server.engine.classifier import ImageClassifier, UnusableClassifier
from server.classifiers import BLUE, CYAN, RED, tiny_classifier

SIDE_PX = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_classifier(tmp_path_factory.mktemp("classifier"))


def score(folder: Path, colour: tuple[int, int, int], *labels: str) -> float:
    return ImageClassifier(folder, labels).highest(bytes(colour) * SIDE_PX * SIDE_PX, SIDE_PX, SIDE_PX)


@pytest.mark.parametrize(("colour", "unsafe"), [(RED, True), (BLUE, False), (CYAN, False)])
def test_a_score_is_the_models_own_opinion(folder: Path, colour: tuple[int, int, int], unsafe: bool) -> None:
    assert (score(folder, colour, "unsafe") > 0.9) is unsafe
    assert (score(folder, colour, "safe") > 0.9) is not unsafe


def test_of_several_labels_the_highest_counts(folder: Path) -> None:
    assert score(folder, BLUE, "unsafe", "safe") == score(folder, BLUE, "safe")


def test_labels_that_can_be_true_at_once_are_scored_each_for_itself(folder: Path, tmp_path: Path) -> None:
    several = Path(shutil.copytree(folder, tmp_path / "several"))
    config = json.loads((several / "config.json").read_text())
    config["problem_type"] = "multi_label_classification"
    (several / "config.json").write_text(json.dumps(config))

    # Its logit is 0: half by itself, almost nothing beside that of the other label.
    assert score(several, RED, "safe") == 0.5
    assert score(folder, RED, "safe") < 0.01


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def of_another_kind(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))


def with_another_head(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "safe", "1": "unsafe", "2": "third"}
    (folder / "config.json").write_text(json.dumps(config))


def without_head(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def without_processor(folder: Path) -> None:
    for file in folder.glob("*processor*"):
        file.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_config, "holds no config.json"),
        (without_weights, "is no image classifier"),
        (of_another_kind, "is no image classifier"),
        (with_another_head, "is no image classifier"),
        (without_head, "lacks the weights of classifier"),
        (without_processor, "is no image classifier"),
    ],
)
def test_a_folder_that_is_no_whole_classifier_is_refused(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    damage(damaged)

    with pytest.raises(UnusableClassifier, match=message):
        ImageClassifier(damaged, ("unsafe",))


def test_a_label_that_it_does_not_have_is_refused_and_those_it_has_are_named(folder: Path) -> None:
    with pytest.raises(UnusableClassifier, match=r"nsfw is no label of .*; its labels are safe, unsafe"):
        ImageClassifier(folder, ("unsafe", "nsfw"))


def test_scores_that_are_no_numbers_are_none(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    (head,) = [name for name in weights if name.startswith("classifier") and name.endswith("bias")]
    weights[head] = weights[head] * float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ValueError, match="no numbers"):
        score(broken, BLUE, "unsafe")


def test_a_path_that_the_file_system_refuses_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnusableClassifier, match="cannot be read: File name too long"):
        ImageClassifier(tmp_path / ("a" * 300), ("unsafe",))
