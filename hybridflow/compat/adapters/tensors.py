"""What tensors and variables answer to programs of TensorFlow alone."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.adapters.values import Reference
from hybridflow.core.layer_context import mask_of


def answer() -> None:
    """Let tensors and variables have ``ref``, and tensors ``_keras_mask``, the mask that a layer gave them or None."""
    setattr(hf.Tensor, "_keras_mask", property(mask_of))  # noqa: B010
    for kind in (hf.Tensor, hf.Variable):
        setattr(kind, "ref", _ref)  # noqa: B010


def _ref(x: object) -> Reference:
    return Reference(x)
