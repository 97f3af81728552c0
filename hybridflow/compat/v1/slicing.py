"""Subscripts and slices, of tensors and of extents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.array.indexing import getitem
from hybridflow.compat.v1.arguments import as_extents
from hybridflow.compat.v1.recording import Recorded, Sizes
from hybridflow.compat.v1.table import Table
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


TABLE = Table()
op = TABLE.op


def _sliced(x: ArrayLike, leaves: Iterable[object]) -> Any:
    return getitem(hf.asarray(x), _key(leaves))


def _key(parts: Iterable[object]) -> Any:
    key_parts: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part and part[0] == "slice":
            key_parts.append(slice(*[None if x is None else _index(x) for x in part[1:]]))
        else:
            key_parts.append(Ellipsis if part == "..." else _newaxis(part))
    return tuple(key_parts)


def _newaxis(part: object) -> Any:
    return None if isinstance(part, str) and part == "new" else part


def _index(x: object) -> Any:
    known = x._known() if isinstance(x, Value) else None
    return x if known is None else known.item()


def _sizes_sliced(x: object, parts: Iterable[object]) -> Any:
    key = _key(parts)
    if not isinstance(x, Sizes) or len(key) != 1:
        return NotImplemented
    result = tuple(x)[_index(key[0])] if not isinstance(key[0], slice) else Sizes(tuple(x)[key[0]])
    return result


_strided = Recorded(_sliced, "StridedSlice", "strided_slice", of_sizes=_sizes_sliced)


def subscript(x: TensorLike, key: TensorLike) -> Any:
    """``x[key]``, whose key may have tensors in it."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice):
            parts.append(("slice", part.start, part.stop, part.step))
        else:
            parts.append("..." if part is Ellipsis else "new" if part is None else part)
    return _strided(x, tuple(parts))


@op("Slice", "slice", default="Slice")
def slice_(input_: Value, begin: TensorLike, size: TensorLike) -> Any:
    starts, counts = as_extents(begin), as_extents(size)
    key = tuple([slice(b, None if isinstance(c, int) and c == -1 else b + c) for b, c in zip(starts, counts)])
    return input_[key]
