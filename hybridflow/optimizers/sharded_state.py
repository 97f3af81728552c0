"""State of optimizers that processes share out (ZeRO, stage 1): each has a part of each slot, and updates that part of
the variable alone.

A part is a run of a variable's elements in their order.  Updates that compute each element from the same one of others
have the same bits, however many parts there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ops.batching_rules import MeshAxis, Share
from hybridflow.core.context import now, suspended
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import TraceError

SMALLEST = 1 << 12  # elements of a variable whose state is shared out: to exchange fewer is not worth it
WHOLE = ("average", "accumulated")  # slots of all elements, which are not those of ``update_step``


class Run(NamedTuple):
    """The elements [begin, end) of a variable that this process updates, and how many there are of all processes."""

    begin: int
    end: int
    total: int

    def cut(self, x: Tensor) -> Tensor:
        """These of a tensor."""
        flat = builder.reshape(x, shape=(self.total,))
        result: Tensor = builder.slice(flat, start=(self.begin,), stop=(self.end,), step=(1,))
        return result


def run_of(variable: Variable, share: Share) -> Run | None:
    """What this process updates of a variable; None where each updates all of it."""
    count = math.prod(map(int, variable.shape))
    if count < SMALLEST or variable.constraint is not None:
        return None
    return Run(*share.part_of(count), count)


class ShardedSlot(Variable):
    """A slot of which this process has the elements of a run, as ``part``.  To read it as a whole is a collective: all
    processes do so, and outside of compiled functions."""

    __slots__ = ("_gather", "part", "run")

    part: Variable
    run: Run
    _gather: Callable[..., Any]

    @classmethod
    def of(cls, slot: Variable, run: Run, share: Share) -> ShardedSlot:
        """The same slot, shared out."""
        self: ShardedSlot = object.__new__(cls)
        whole = slot._current()
        self._begin(whole, False, slot.name)
        self.run = run
        self.part = Variable(run.cut(whole), trainable=False, name=slot.name)
        # Of the whole there is the type alone: a view of one element.
        self._tensor = wrap(np.broadcast_to(np.zeros((), whole.dtype), whole.shape))
        self._gather = share.gathers("state", (run.total,), run.total, None)
        return self

    def _current(self) -> Tensor:
        with suspended():
            mine = self.part._current().numpy()
        values: np.ndarray = self._gather(mine)[0]
        return wrap(values.reshape(self._tensor.shape))

    def _read(self) -> Tensor:
        if now().trace is not None:
            raise TraceError(
                "optimizer", f"the state {self.name!r} is shared out over processes; read it outside of functions."
            )
        return self._current()

    def assign(self, value: ArrayLike, *args: object, **options: object) -> Variable:
        """Set it: each process takes its part."""
        tensor = as_tensor(value, "assign", self.dtype)
        if tensor.shape != self._tensor.shape:
            tensor = builder.broadcast_to(tensor, shape=self._tensor.shape)
        self.part.assign(self.run.cut(tensor))
        return self


class _Part(Variable):
    """A run of a variable's elements, in the place of the variable while it is updated."""

    __slots__ = ()

    @classmethod
    def of(cls, variable: Variable, run: Run) -> _Part:
        self: _Part = object.__new__(cls)
        value = run.cut(as_tensor(variable, "optimizer"))
        self._tensor, self._own = value, None
        self.trainable, self.name = False, variable.name
        self._regularizer = self._constraint = None
        self._narrows = self._sums_replicas = False
        self._makers = ()
        return self

    def _read(self) -> Tensor:
        return self._tensor

    def assign(self, value: ArrayLike, *args: object, **options: object) -> Variable:
        self._tensor = as_tensor(value, "assign", self._tensor.dtype)
        return self


def updated_in_parts(
    variable: Variable,
    gradient: Tensor,
    slots: dict[int, dict[str, Variable]],
    axis: MeshAxis,
    update: Callable[[Variable, Tensor], None],
) -> bool:
    """Have this process update its part of a variable, and put the parts of all together; False where the variable's
    state is not shared out."""
    slots_here = slots[id(variable)]
    run = next((slot.run for slot in slots_here.values() if isinstance(slot, ShardedSlot)), None)
    if run is None:
        return False
    part = _Part.of(variable, run)
    slots[id(part)] = {name: slot.part if isinstance(slot, ShardedSlot) else slot for name, slot in slots_here.items()}
    try:
        update(part, run.cut(gradient))
    finally:
        del slots[id(part)]
    whole = builder.gather_parts(part._tensor, axis=axis.name, size=axis.size, count=run.total)
    variable.assign(builder.reshape(whole, shape=variable.shape))
    return True


def share_out(variable: Variable, slots_here: dict[str, Variable], share: Share) -> None:
    """Keep of the slots of a variable, by name, this process's parts; of those that ``update_step`` has."""
    run = run_of(variable, share)
    if run is None:
        return
    with suspended():
        for name, slot in slots_here.items():
            if name not in WHOLE and slot.shape == variable.shape and not isinstance(slot, ShardedSlot):
                slots_here[name] = ShardedSlot.of(slot, run, share)
