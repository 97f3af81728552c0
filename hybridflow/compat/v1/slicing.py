"""Subscripts and slices, of tensors and of extents."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.array.indexing import getitem
from hybridflow.compat.v1.arguments import as_extents
from hybridflow.compat.v1.recording import Recorded, Sizes
from hybridflow.compat.v1.table import Table
from hybridflow.core.tensor import Tensor as Value

TABLE = Table()
op = TABLE.op


def _sliced(x: Any, leaves: Any) -> Any:
    return getitem(hf.asarray(x), _key(leaves))


def _key(parts: Any) -> Any:
    key_parts: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part and part[0] == "slice":
            key_parts.append(slice(*[None if x is None else _index(x) for x in part[1:]]))
        else:
            key_parts.append(Ellipsis if part == "..." else _newaxis(part))
    return tuple(key_parts)


def _newaxis(part: Any) -> Any:
    return None if isinstance(part, str) and part == "new" else part


def _index(x: Any) -> Any:
    known = x._known() if isinstance(x, Value) else None
    return x if known is None else known.item()


def _sizes_sliced(x: Any, parts: Any) -> Any:
    key = _key(parts)
    if not isinstance(x, Sizes) or len(key) != 1:
        return NotImplemented
    result = tuple(x)[_index(key[0])] if not isinstance(key[0], slice) else Sizes(tuple(x)[key[0]])
    return result


_strided = Recorded(_sliced, "StridedSlice", "strided_slice", of_sizes=_sizes_sliced)


def subscript(x: Any, key: Any) -> Any:
    """``x[key]``, whose key may have tensors in it."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice):
            parts.append(("slice", part.start, part.stop, part.step))
        else:
            parts.append("..." if part is Ellipsis else "new" if part is None else part)
    return _strided(x, tuple(parts))


@op("Slice", "slice", default="Slice")
def slice_(input_: Any, begin: Any, size: Any) -> Any:
    starts, counts = as_extents(begin), as_extents(size)
    key = tuple([slice(b, None if isinstance(c, int) and c == -1 else b + c) for b, c in zip(starts, counts)])
    return input_[key]
