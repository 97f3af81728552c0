"""Variables: named mutable state around an immutable tensor."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.core import display, pytree, transaction
from hybridflow.core.context import now
from hybridflow.core.tensor import Operators, Tensor, wrap
from hybridflow.runtime.calls.variable_locks import (
    IN_PLACE,
    RUNNING,
    VariableLock,
    holds_lock,
    set_all,
    try_with_lock,
    with_locks,
)

if TYPE_CHECKING:
    from hybridflow.core.layer_context import Label
    from hybridflow.core.shape import Shape


@pytree.declare_leaf
class Variable(Operators):
    """Mutable state that functions read and assign. Its shape and dtype never change.

    A variable can be passed to every function and operator in place of its value. Reads and assignments inside a
    traced function are part of its program, in order. Tensors that were read before an assignment keep their values.

    Any thread may read and write. Writers of one variable wait for each other; a reader gets the old or the new value.

    ``_tensor`` is the value. ``_own`` is the same object while its memory is the variable's own: made by a program for
    this variable, and shown to nobody. The next program may then write there. Whoever lets the value be seen says so,
    see ``_current``. Native code reads and sets both slots, and the words of ``_gate`` (see ``calls.variable_locks``).

    Args:
        initial: the first value: a tensor or array-like value, or a function without arguments that returns it.
        trainable: whether tapes watch a float variable as soon as it is read.
        dtype: the dtype of the variable. By default that of ``initial``.
        name: the name in messages and files.

    >>> v = hf.Variable([1.0, 2.0], name="v")
    >>> v.assign_add([10.0, 20.0])
    <Variable 'v' f32[2] cpu> [11. 22.]
    """

    __slots__ = (
        "__weakref__",
        "_constraint",
        "_gate",
        "_makers",
        "_narrows",
        "_own",
        "_regularizer",
        "_sums_replicas",
        "_tensor",
        "name",
        "trainable",
    )
    _tensor: Tensor
    _own: Tensor | None
    _regularizer: object
    _constraint: object
    _makers: tuple[Label, ...]  # of the layers in which it was made, the outermost first
    _narrows: bool
    _sums_replicas: bool

    if TYPE_CHECKING:  # what ``array.assignment`` installs

        def __init__(
            self, initial: object, trainable: bool = True, dtype: object = None, name: str | None = None
        ) -> None: ...
        def assign(
            self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
        ) -> Variable: ...
        def assign_add(
            self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
        ) -> Variable: ...
        def assign_sub(
            self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
        ) -> Variable: ...
        def sparse_read(self, indices: object, name: str | None = None) -> Tensor: ...
        def gather_nd(self, indices: object, name: str | None = None) -> Tensor: ...
        def scatter_mul(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def scatter_div(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def batch_scatter_update(
            self, sparse_delta: object, use_locking: bool = False, name: str | None = None
        ) -> Variable: ...
        def scatter_add(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def scatter_sub(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def scatter_update(
            self, sparse_delta: object, use_locking: bool = False, name: str | None = None
        ) -> Variable: ...
        def scatter_min(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def scatter_max(self, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable: ...
        def scatter_nd_add(self, indices: object, updates: object, name: str | None = None) -> Variable: ...
        def scatter_nd_sub(self, indices: object, updates: object, name: str | None = None) -> Variable: ...
        def scatter_nd_update(self, indices: object, updates: object, name: str | None = None) -> Variable: ...
        def scatter_nd_min(self, indices: object, updates: object, name: str | None = None) -> Variable: ...
        def scatter_nd_max(self, indices: object, updates: object, name: str | None = None) -> Variable: ...

    def _begin(self, tensor: Tensor, trainable: bool, name: str | None) -> None:
        """``__init__`` with the value that the variable starts from."""
        self._tensor, self._own = _value_of(tensor), None
        self._gate = VariableLock()
        self.trainable = bool(trainable)
        self.name = name
        self._regularizer = self._constraint = None
        self._narrows = self._sums_replicas = False
        self._makers = ()

    def _rule(self, regularizer: object, constraint: object, narrows: bool = False) -> Variable:
        """Say once, before anyone else has the variable, what the loss adds for it, and what updates make it satisfy;
        whether layers with mixed precision compute with it in their dtype.  Returns the variable."""
        self._regularizer, self._constraint, self._narrows = regularizer, constraint, narrows
        return self

    def _sum_over_replicas(self) -> Variable:
        """Let what the replicas of a strategy add to it add up.  Returns the variable."""
        self._sums_replicas = True
        return self

    @property
    def regularizer(self) -> Any:
        """What ``layer.losses`` adds for it, a function of its value, or None."""
        return self._regularizer

    @property
    def constraint(self) -> Any:
        """What optimizers make of its value after each update, a function, or None."""
        return self._constraint

    @property
    def path(self) -> str:
        """The name behind those of the layers within which the variable was made: ``"model/dense/kernel"``."""
        return "/".join([*(maker.name for maker in self._makers), self.name or "variable"])

    @property
    def shape(self) -> Shape:
        return self._tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._tensor.dtype

    @property
    def device(self) -> str:
        return self._tensor.device

    def _read(self) -> Tensor:
        """The current value: of the trace while tracing, else the tensor; tapes are told."""
        state = now()
        trace = state.trace
        tensor = self._current() if trace is None else trace.read_variable(self)
        for tape in state.tapes:
            tape.watch_read(self, tensor)
        return tensor

    def _seen(self) -> Tensor:
        """What ``_read`` gives, as whoever computes with it takes it: a weight in the dtype of the layer that is being
        called, if that has mixed precision."""
        value = self._read()
        if self._narrows and (narrow := now().narrow) is not None:
            value = value.astype(narrow)
        return value

    def _current(self) -> Tensor:
        """The value outside of traces, to keep: nothing writes into its memory from here on."""
        tensor = self._tensor
        self._own = None
        return self._settled(tensor)

    def _settled(self, tensor: Tensor) -> Tensor:
        """What was the value before ``_own`` was cleared, when nothing writes into its memory any more: no program
        begins to (see ``calls.variable_locks``), so it is at most the one that does so now."""
        gate = self._gate
        if gate.words[RUNNING] != IN_PLACE:
            return tensor
        if gate.wait_while_written(functools.partial(self._holds_another, tensor)):
            return tensor
        return wrap(tensor._array.copy())  # this very thread is about to write there, or has just done so

    def _holds_another(self, tensor: Tensor) -> bool:
        return self._tensor is not tensor

    def _reclaim(self) -> None:
        """Let the value's memory be the variable's own again where all who saw it have let go of it, so that the next
        program may write there."""
        if self._own is not self._tensor and not transaction.is_open() and hasattr(sys, "getrefcount"):
            try_with_lock(self._gate, self._reclaim_serially)

    def _reclaim_serially(self) -> None:
        probe: Variable = object.__new__(Variable)  # whose value nobody else has
        probe._tensor = wrap(np.empty(1))
        if _referred(self) != _referred(probe):  # all but those who come this very moment are seen here
            return
        array = self._tensor._array
        if type(array) is not np.ndarray or not (array.flags.owndata and array.flags.writeable):
            return
        del array
        if _renewed(self) != _renewed(probe):
            self._own = None

    def _write(self, tensor: Tensor, expected: Tensor | None = None) -> bool:
        """Make this the value, outside of traces; if a value is expected, only in place of that, at once.  Whether it
        has been done."""
        value = _value_of(tensor)
        # What it held is let go of when the turn is over: that may run Python code.
        held = try_with_lock(self._gate, self._replace, value, expected)
        if held is None and expected is None:
            held = with_locks((self._gate,), functools.partial(self._replace, value, None))
        return held is not None

    def _replace(self, value: Tensor, expected: Tensor | None) -> Tensor | None:
        """Set the value, by who has the turn; returns the old one, or None if that is not what was expected."""
        before = self._tensor
        if expected is not None and before is not expected:
            return None
        if transaction.is_open():
            before = self._current()
            transaction.note(self, before, value)
        self._own = None
        self._tensor = value
        return before

    def _take_back(self, after: Tensor, before: Tensor) -> None:
        """Make ``before`` the value again, if it is still ``after``."""

        def restore() -> None:
            if self._tensor is after:
                self._own = None
                self._tensor = before

        with_locks((self._gate,), restore)

    def value(self) -> Tensor:
        """The current value as a tensor; later assignments do not change that tensor.

        Returns:
            A tensor of the variable's shape and dtype.
        """
        return +self._seen()

    read_value = value

    def _title(self) -> str:
        return f"variable {self.name + ' ' if self.name else ''}{self.type}"

    @property
    def is_watched(self) -> bool:
        """Whether tapes watch the variable when it is read."""
        return self.trainable and is_inexact(self.dtype)

    def numpy(self) -> np.ndarray:
        """The value as a read-only NumPy array.

        Returns:
            An array of the variable's shape and dtype.

        Raises:
            TraceError: while tracing.
        """
        return self._read().numpy()

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self._read().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule over the present value, which later assignments do not change: see ``Tensor.__dlpack__``."""
        return self._read().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._read().__dlpack_device__()

    def item(self) -> Any:
        """The one element as a Python scalar.

        Returns:
            A bool, int, float or complex.

        Raises:
            ShapeError: when there is not exactly one element.
        """
        return self._read().item()

    def tolist(self) -> Any:
        """The value as nested Python lists, or a scalar.

        Returns:
            Lists of Python numbers, or a number.
        """
        return self._read().tolist()

    def __bool__(self) -> bool:
        return bool(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __index__(self) -> int:
        return self._read().__index__()

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec)

    def __hash__(self) -> int:
        """By identity: a variable is a place, and stays the same place whatever it holds."""
        return object.__hash__(self)

    _KEPT = "_regularizer", "_constraint", "_narrows", "_makers", "_sums_replicas"  # by copies and pickles

    def __reduce__(self) -> Any:
        rest = {name: getattr(self, name) for name in self._KEPT}
        return Variable, (self._current(), self.trainable, None, self.name), (None, rest)

    def __deepcopy__(self, memo: dict[int, Any] | None) -> Variable:
        again = Variable(self._current(), self.trainable, None, self.name)
        again._makers = copy.deepcopy(self._makers, memo)  # those of the layers that are copied with it
        again._sums_replicas = self._sums_replicas
        return again._rule(self._regularizer, self._constraint, self._narrows)

    def __repr__(self) -> str:
        title = f"Variable {self.name!r}" if self.name else "Variable"
        return display.describe(self._current(), title + ("" if self.trainable else " not trainable"))


def _value_of(tensor: Tensor) -> Tensor:
    """A tensor as the value of a variable.  It is an object of its own: tapes must not take the variable for the tensor
    that it was given.  Programs read it again and again, so it has no strides that each of them would have to undo."""
    array = tensor._array
    return wrap(array.copy() if type(array) is np.ndarray and not array.flags.c_contiguous else array)


def _referred(variable: Variable) -> tuple[int, int]:
    """How many refer to the value, and to its array."""
    return sys.getrefcount(variable._tensor), sys.getrefcount(variable._tensor._array)


def _renewed(variable: Variable) -> tuple[int, int]:
    """Let the value be another object, whose memory is the variable's own.  Returns how many refer to the old one, and
    to its array: whoever took it before.  Those who take the new one clear ``_own``, as ever."""
    old = variable._tensor
    new = wrap(old._array)
    variable._own = new  # first: who reads meanwhile clears it
    variable._tensor = new
    return sys.getrefcount(old), sys.getrefcount(old._array)


_tensor_of: Callable[[Variable], Tensor] = vars(Variable)["_tensor"].__get__
_set_exclusive: Callable[[Variable, Tensor | None], None] = vars(Variable)["_own"].__set__


def current_values(variables: Sequence[Variable]) -> list[Tensor]:
    """The values of variables, to keep, as they are together at one moment: a call that updates several of them has
    updated all or none."""
    if len(variables) == 1:
        return [variables[0]._current()]
    while True:
        for _ in range(_TRIES):
            tensors = list(map(_tensor_of, variables))
            set_all(_set_exclusive, variables, repeat(None))
            settled = [variable._settled(tensor) for variable, tensor in zip(variables, tensors)]
            # Each of them is the value of its variable at some moment; where none has another one now, all were so when
            # the last had settled.  A value that was replaced never comes back.
            if all(map(is_, map(_tensor_of, variables), tensors)):
                return settled
        if not holds_lock():  # else it could wait for one who waits for this thread
            return with_locks([variable._gate for variable in variables], lambda: [v._current() for v in variables])


_TRIES = 3  # to read several variables while others write them, before these have to wait
