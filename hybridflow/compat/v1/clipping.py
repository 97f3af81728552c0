"""TensorFlow 1's functions that bound values and norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.recording import Recorded
from hybridflow.compat.v1.table import Table
from hybridflow.optimizers import clipping

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


TABLE = Table()
op = TABLE.op


@op("ClipByValue", default="clip_by_value")
def clip_by_value(t: ArrayLike, clip_value_min: ArrayLike, clip_value_max: ArrayLike) -> Any:
    return hf.minimum(hf.maximum(t, clip_value_min), clip_value_max)


@op("ClipByNorm", default="clip_by_norm")
def clip_by_norm(t: ArrayLike, clip_norm: ArrayLike, axes: Any = None) -> Any:
    return clipping.clip_by_norm(t, clip_norm) if axes is None else clipping.clip_by_norm(t, clip_norm, axes)


_global_norm = Recorded(lambda tensors: clipping.global_norm(tensors), "GlobalNorm", "global_norm")
_clip_all = Recorded(
    lambda tensors, norm, use_norm: list(clipping.clip_by_global_norm(tensors, norm, use_norm)[0]),
    "ClipByGlobalNorm",
    "clip_by_global_norm",
)


def global_norm(t_list: Any, name: str | None = None) -> Any:
    return _global_norm([t for t in t_list if t is not None], name=name)


def clip_by_global_norm(
    t_list: Any, clip_norm: object, use_norm: TensorLike | None = None, name: str | None = None
) -> Any:
    """The tensors, scaled so that the norm of all together is at most this, and the norm that it was, or is said to be
    by ``use_norm``."""
    present = [t for t in t_list if t is not None]
    norm = _global_norm(present) if use_norm is None else convert_to_tensor(use_norm)
    clipped = iter(_clip_all(present, clip_norm, norm, name=name))
    return [None if t is None else next(clipped) for t in t_list], norm


TABLE.update(global_norm=global_norm, clip_by_global_norm=clip_by_global_norm)
