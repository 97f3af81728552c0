"""Public functions under a tape: run by one native call each, and recorded as a whole.

A tape need not hold the values between the ops of a function: the derivative computes those that it needs again, from
the arguments and the result, which mostly takes less time than to record them.  A ``Whole`` is recorded in the place of
its ops where one tape alone is told, and is taken apart into them before anybody looks at single ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.tier_up import TAPED_CALLS, TierUp
from hybridflow.core.variable import Variable
from hybridflow.eager.call_signature import form_of
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.calls.entry import Dispatcher, note_use

if TYPE_CHECKING:
    from hybridflow.compiler.autodiff import Record
    from hybridflow.compiler.ir.graph import Graph
    from hybridflow.runtime.calls.native_call import NativeCall

# What answers calls of a body like one that gave a result, and its graph; None where they have to be op by op.
Maker = Callable[[Callable[..., Any], Sequence[Any], dict[str, Any], Any], "tuple[NativeCall, Graph] | None"]

_MAX_CALLS = 16  # of one function: native code looks at them one by one

_maker: Callable[[], Maker] | None = None
_making = fork_safe_locks.make()


def set_maker(load: Callable[[], Maker]) -> None:
    """Say who makes wholes.  ``load`` is called when the first one is due."""
    global _maker
    _maker = load


@uninterruptible.loaded
def _inlining() -> ModuleType:
    from hybridflow.compiler import graph_inlining  # which a first operation does without

    return graph_inlining


class TapedCall:
    """A function whose tensor arguments are the inputs of ``graph``, in order; its one result is the output."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def records(self, b: object, inputs: Sequence[Any], out: object) -> list[Record]:
        """The ops that the whole stands for, between values of the builder ``b``, which computes those in between."""
        inlining = _inlining()
        values: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        extents = inlining.extents_of(values)
        values[self.graph.outputs[0]] = out
        result: list[Record] = inlining.apply_again(b, self.graph.nodes, values, extents)
        return result


def expand_taped(records: Sequence[Record], b: object) -> list[Record]:
    """The records with the ops of wholes in the place of them."""
    result: list[Record] = []
    for record in records:
        if type(record.vjp) is TapedCall:
            result += record.vjp.records(b, record.inputs, record.outputs[0])
        else:
            result.append(record)
    return result


def values_among(arguments: Iterable[Any]) -> list[Any]:
    """The tensors, arrays and NumPy scalars among arguments, those in sequences included."""
    result: list[Any] = []
    for value in arguments:
        if type(value) is list or type(value) is tuple:
            result += values_among(value)
        elif type(value) is Tensor or isinstance(value, (np.ndarray, np.generic)):
            result.append(value)
    return result


def tensors_among(arguments: Iterable[Any]) -> tuple[Tensor, ...]:
    """The same as tensors.  Arrays may change: they are copied."""
    return tuple([x if type(x) is Tensor else wrap(np.array(x)) for x in values_among(arguments)])


class TapedCalls:
    """Answers calls of a function where a tape is told of them, and makes the native calls that do so next time."""

    __slots__ = ("_owner", "_tier_up")

    def __init__(self, owner: Dispatcher) -> None:
        self._owner: Any = owner  # which has the body as ``__wrapped__``
        self._tier_up = TierUp(TAPED_CALLS)

    def __call__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a call that no native call answered."""
        if any(type(x) is Variable for x in args):
            return self._owner(*[x._seen() if type(x) is Variable else x for x in args], **kwargs)
        result = self._owner.__wrapped__(*args, **kwargs)
        form = form_of(args, kwargs)
        if form is not None:
            self._note(form, args, kwargs, result)
        return result

    def _note(self, form: object, args: Sequence[Any], kwargs: dict[str, Any], result: object) -> None:
        """Count a call that was made op by op, and make a whole if there were enough."""
        if not self._tier_up.is_due(form) or _maker is None or not note_use() or not _making.acquire(blocking=False):
            return  # if it is due, the next call is, too, where native code is not ready or another thread is at it
        try:
            self._make(form, args, kwargs, result)
        finally:
            _making.release()

    def _make(self, form: object, args: Sequence[Any], kwargs: dict[str, Any], result: object) -> None:
        assert _maker is not None
        self._tier_up.begin_try(form)
        with suspended():
            taped = _maker()(self._owner.__wrapped__, args, kwargs, result)
        if taped is not None:
            call, graph = taped
            call.whole = TapedCall(graph)
            self._owner._taped = (call, *self._owner._taped[: _MAX_CALLS - 1])
            self._tier_up.reset(form)  # it is counted again where it is dropped, or does not fit
