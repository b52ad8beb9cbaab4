"""The pipeline classes that are served, and what each of them can. The checkpoint's model_index.json names its class.

| class                       | pictures of an edit | mask                   | from text |
| --------------------------- | ------------------- | ---------------------- | --------- |
| QwenImageEditPlusPipeline   | several             | composited by the API  | no        |
| QwenImageEditInpaintPipeline | one                | taken by the model     | no        |
| QwenImageInpaintPipeline    | one                 | needed by the model    | no        |
| QwenImagePipeline           | no edits            | -                      | yes       |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from imageedit_server.worker.protocol import Capabilities

SizeHeldBy = Literal["arguments", "constants", "dimensions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One class: the module of diffusers that holds it, and what it takes.

    `most_pictures` is 0 for a class that makes pictures from text alone, and None for no limit of its own.
    `size_held_by` says what keeps it at the candidate size: its arguments, or constants or a function of its module,
    because a stock pipeline enlarges what it is given to a megapixel.
    """

    module: str
    most_pictures: int | None
    mask: bool = False
    mask_required: bool = False
    size_held_by: SizeHeldBy = "arguments"

    @property
    def edits(self) -> bool:
        """Whether it takes a picture."""
        return self.most_pictures != 0

    def capabilities(
        self, *, max_references: int, max_prompt_tokens: int, guidance: bool, negative_prompt: bool
    ) -> Capabilities:
        """What a model of this class takes within the settings; `guidance` is a matter of its weights."""
        return Capabilities(
            max_references=max_references if self.most_pictures is None else min(max_references, self.most_pictures),
            max_prompt_tokens=max_prompt_tokens,
            edit=self.edits,
            generate=not self.edits,
            mask=self.mask,
            mask_required=self.mask_required,
            guidance=guidance,
            negative_prompt=negative_prompt,
        )


KINDS: Mapping[str, Kind] = {
    "QwenImageEditPlusPipeline": Kind(
        module="pipeline_qwenimage_edit_plus", most_pictures=None, size_held_by="constants"
    ),
    "QwenImageEditInpaintPipeline": Kind(
        module="pipeline_qwenimage_edit_inpaint", most_pictures=1, mask=True, size_held_by="dimensions"
    ),
    "QwenImageInpaintPipeline": Kind(
        module="pipeline_qwenimage_inpaint", most_pictures=1, mask=True, mask_required=True
    ),
    "QwenImagePipeline": Kind(module="pipeline_qwenimage", most_pictures=0),
}
