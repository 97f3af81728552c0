"""How one use of a REDUCE or SCAN op folds: the op's rules with dtypes and attributes filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import TensorType, is_static, static_size
from hybridflow.compiler.ops.emitter_protocol import Emit, State, Val
from hybridflow.compiler.ops.op_table import NOWHERE, OpDef

Component = tuple[Any, dt.DType]  # a number and the dtype in which it is kept
_LOOPS = ("axes", "axis")  # attributes that say what is folded, not how
_NARROW = 2**31 - 1  # int32 holds the positions of so many elements, and says nowhere by this number
_NO_POSITION = Val("%no.position", dt.int64, 1)  # LLVM knows no such value: an op that asked for it would not compile


class FoldRules:
    """The fold of an op over inputs of ``types``.  Values are those of an emitter; narrow floats are widened first."""

    __slots__ = ("attrs", "dtypes", "op", "positions")

    def __init__(self, op: OpDef, types: Sequence[TensorType], attrs: Mapping[str, Any]) -> None:
        self.op = op
        self.dtypes = tuple([dt.compute_dtype(type.dtype) for type in types])
        self.attrs = {name: value for name, value in attrs.items() if name not in _LOOPS}
        # Narrow positions are half of the work where a vector of values needs two of wide ones.
        narrow = bool(types) and is_static(types[0].shape) and static_size(types[0].shape) <= _NARROW
        self.positions = dt.int32 if narrow else dt.int64

    @property
    def identity(self) -> tuple[Component, ...]:
        """The components of the state of nothing."""
        return tuple([self._nowhere if component is NOWHERE else component for component in self._nothing])

    @property
    def _nothing(self) -> Sequence[Component]:
        assert self.op.init is not None, self.op
        return tuple(self.op.init(self.dtypes[0], **self.attrs))

    @property
    def _nowhere(self) -> Component:
        return int(np.iinfo(self.positions).max), self.positions

    @property
    def has_position(self) -> bool:
        """Whether states have a position, as their last component."""
        return self._nothing[-1] is NOWHERE

    def lift(self, e: Emit, values: Sequence[Val], position: Callable[[], Val]) -> State:
        """The state of one element: its value in each input, and its position among what is folded together, which is
        made only where a state has one."""
        assert self.op.lift is not None, self.op
        wide = [e.convert(value, dtype) for value, dtype in zip(values, self.dtypes)]
        at = e.convert(position(), self.positions) if self.has_position else _NO_POSITION
        return tuple(self.op.lift(e, *wide, at, **self.attrs))

    def combine(self, e: Emit, first: State, second: State) -> State:
        assert self.op.combine is not None, self.op
        return tuple(self.op.combine(e, first, second, **self.attrs))

    def later(self, e: Emit, first: State, second: State) -> State:
        """``combine`` of states whose elements come one after the other."""
        if self.op.later is None:
            return self.combine(e, first, second)
        return tuple(self.op.later(e, first, second, **self.attrs))

    def finish_several(self, e: Emit, state: State, dtypes: Sequence[dt.DType]) -> tuple[Val, ...]:
        """The results of an op with several."""
        assert self.op.finish is not None, self.op
        parts: Any = self.op.finish(e, state, dtypes, **self.attrs)  # type: ignore[arg-type]
        return tuple([e.convert(value, dtype) for value, dtype in zip(parts, dtypes, strict=True)])

    def finish(self, e: Emit, state: State, dtype: dt.DType) -> Val:
        """The result, of ``dtype``."""
        assert self.op.finish is not None, self.op
        return e.convert(self.op.finish(e, state, dtype, **self.attrs), dtype)
