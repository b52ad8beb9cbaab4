"""An image classifier of transformers on the CPU, for the safety hook. It never opens the card."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

# Beside the process that feeds the card and two decoders: the card's host threads come first.
MOST_THREADS = 4


class UnusableClassifier(Exception):
    """The folder holds no classifier, or not these labels; the message says what to do."""


class ImageClassifier:
    """One loaded classifier.

    Args:
        labels: those whose scores count.

    Raises:
        UnusableClassifier: it cannot be loaded, or a label is none of its own.
    """

    def __init__(self, folder: Path, labels: tuple[str, ...]) -> None:
        try:
            there = (folder / "config.json").is_file()
        except OSError as error:
            raise UnusableClassifier(f"{folder} cannot be read: {error.strerror}; correct the path") from error
        if not there:
            raise UnusableClassifier(f"{folder} holds no config.json; give a folder as save_pretrained writes it")
        self._model, self._processor = _loaded(folder)
        of_label = {str(label): index for index, label in self._model.config.id2label.items()}
        unknown = [label for label in labels if label not in of_label]
        if unknown:
            known = ", ".join(sorted(of_label)[:50])
            raise UnusableClassifier(f"{', '.join(unknown)} is no label of {folder}; its labels are {known}")
        self._indices = [of_label[label] for label in labels]

    def highest(self, rgb: bytes, width_px: int, height_px: int) -> float:
        """The highest score of the labels that count, from 0 to 1.

        Raises:
            ValueError: the model gave no number.
        """
        import torch
        from PIL import Image

        picture = Image.frombytes("RGB", (width_px, height_px), rgb)
        inputs = self._processor(images=picture, return_tensors="pt")
        with torch.inference_mode():
            logits = self._model(**inputs).logits[0].float()
        # Several labels can be true at once only where the checkpoint says so.
        several = self._model.config.problem_type == "multi_label_classification"
        scores = logits.sigmoid() if several else logits.softmax(dim=0)
        # Compared with anything NaN is false: it would let every picture through.
        if not math.isfinite(float(scores.sum())):
            raise ValueError("the classifier's scores are no numbers")
        return max(float(scores[index]) for index in self._indices)


def _loaded(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoImageProcessor, AutoModelForImageClassification
    from transformers.utils import logging as library_logging

    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()

    torch.set_num_threads(max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2)))
    try:
        # From the folder alone: no hub, no code of the checkpoint's, no pickles.
        model, info = AutoModelForImageClassification.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever a loader raises, this folder is of no use
        message = " ".join(str(error).split())[:300]
        raise UnusableClassifier(f"{folder} is no image classifier of transformers: {message}") from error
    # The library draws what is missing by chance, and such a classifier looks as if it worked.
    if info["missing_keys"]:
        raise UnusableClassifier(f"{folder} lacks the weights of {', '.join(sorted(info['missing_keys'])[:5])}")
    return model.eval(), processor
