"""A real but tiny image classifier that knows one thing: pictures that are red are unsafe."""

from __future__ import annotations

from pathlib import Path

SIDE_PX = 32
LABELS = {0: "safe", 1: "unsafe"}
RED, BLUE = (230, 20, 20), (20, 20, 230)
# The stub engine inverts: this one becomes red.
CYAN = (25, 235, 235)


def tiny_classifier(folder: Path) -> Path:
    """A ResNet of one layer with weights by hand, saved as `save_pretrained` does.

    Its first filter gives red minus green minus blue of each pixel, less a threshold; the layer behind it passes that
    on; the mean over the picture decides.
    """
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification, ViTImageProcessor

    config = ResNetConfig(
        embedding_size=4,
        hidden_sizes=[4],
        depths=[1],
        layer_type="basic",
        num_labels=len(LABELS),
        id2label=LABELS,
        label2id={label: index for index, label in LABELS.items()},
    )
    model = ResNetForImageClassification(config).eval()
    embedder, layer = model.resnet.embedder.embedder, model.resnet.encoder.stages[0].layers[0]
    with torch.no_grad():
        embedder.convolution.weight.zero_()
        embedder.convolution.weight[0, :, 3, 3] = torch.tensor([1.0, -1.0, -1.0])
        embedder.normalization.bias.fill_(-1.5)
        layer.layer[-1].normalization.weight.zero_()
        layer.layer[-1].normalization.bias.zero_()
        linear = model.classifier[-1]
        linear.weight.zero_()
        linear.weight[1, 0] = 20.0
        linear.bias.copy_(torch.tensor([0.0, -4.0]))
    model.save_pretrained(folder)
    half = [0.5, 0.5, 0.5]
    processor = ViTImageProcessor(size={"height": SIDE_PX, "width": SIDE_PX}, image_mean=half, image_std=half)
    processor.save_pretrained(folder)
    return folder
