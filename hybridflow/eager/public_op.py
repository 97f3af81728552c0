"""Public functions at the price of a native call.

The functions of ``array`` and ``nn`` are compositions of primitives in plain Python, which look at their arguments
anew at each call.  Since compiled and eager results have the same bits, a function that is called again and again in
one way may be compiled as a whole without anyone noticing: its *plan*, a native call, answers from then on where
nothing records, traces or asks otherwise.  Whatever fits no plan, and every error, comes from the body.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from hybridflow.core.context import dialect, only_tape, reasons
from hybridflow.core.tier_up import PUBLIC_OPS, TierUp
from hybridflow.eager.call_signature import form_of, names_objects
from hybridflow.eager.operands import as_tensor, beside
from hybridflow.eager.taped_calls import TapedCalls
from hybridflow.errors import ArgumentTypeError, of_arguments, of_user
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.calls.entry import Dispatcher, note_use

if TYPE_CHECKING:
    from hybridflow.runtime.calls.native_call import NativeCall

P = ParamSpec("P")
R = TypeVar("R")
# The plan for calls of a body like one that gave a result: (body, args, kwargs, result).
Planner = Callable[[Callable[..., Any], Sequence[Any], dict[str, Any], Any], "NativeCall | None"]

_MOST_PLANS = 16  # of one function: native code looks at them one by one

_planner: Callable[[], Planner] | None = None
_planning = fork_safe_locks.make()


def set_planner(load: Callable[[], Planner]) -> None:
    """Say who makes plans.  ``load`` is called when the first one is due: it may import what an operation does
    without."""
    global _planner
    _planner = load


class PublicOp(Dispatcher):
    """A function with plans.  To Python it is the function in all but its type."""

    __slots__ = ("__dict__", "__weakref__", "_is_constant", "_plans", "_taped_calls", "_tier_up")
    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __init__(self, body: Callable[..., Any], is_constant: bool) -> None:
        functools.update_wrapper(self, body)
        self._dispatch = ()
        self._is_constant = is_constant
        self._tier_up = TierUp(PUBLIC_OPS, groups=2)  # of forms: for any values, and for objects that come and go
        self._plans: dict[Any, NativeCall] = {}  # the last one of a form
        self._taped = ()
        self._taped_calls = TapedCalls(self)

    def _call_slow(self, *args: object, **kwargs: object) -> Any:
        try:
            if not reasons.none_here():
                return self.__wrapped__(*args, **kwargs) if only_tape() is None else self._taped_calls(args, kwargs)
            result = self.__wrapped__(*args, **kwargs)
        except BaseException as error:
            raise of_user(of_arguments(error, self.__wrapped__))  # noqa: B904  # the very error
        self._note(args, kwargs, result)
        return result

    def _note(self, args: Sequence[Any], kwargs: dict[str, Any], result: object) -> None:
        """Count a call that no plan answered, and make one if there were enough."""
        form = form_of(args, kwargs)
        if form is None:
            return
        is_due = self._tier_up.is_due(form, names_objects(form)) and _planner is not None
        if not is_due or not note_use():  # a plan without native code is of no use
            return
        if _planning.acquire(blocking=False):  # another thread's plan may wait
            try:
                self._plan(form, args, kwargs, result)
            finally:
                _planning.release()

    def _plan(self, form: Any, args: Sequence[Any], kwargs: dict[str, Any], result: object) -> None:
        assert _planner is not None
        before = self._plans.get(form)
        if before is not None and not before.calls:  # it did not answer the calls that it was made for
            self._tier_up.give_up(form)
            return
        kind = names_objects(form)
        self._tier_up.begin_try(form, kind)
        planned = _view_calls().view_call(args, kwargs, result, self._is_constant)
        if planned is not None:
            self._tier_up.tries[kind] -= 1  # it costs next to nothing
        elif not self._is_constant:
            planned = _planner()(self.__wrapped__, args, kwargs, result)
        if planned is not None:
            # A plan takes conditions for granted that the form does not tell, so there may be another.
            self._tier_up.reset(form)
            self._dispatch = (planned, *self._dispatch[: _MOST_PLANS - 1])
            self._plans = {f: plan for f, plan in self._plans.items() if plan in self._dispatch} | {form: planned}

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{self.__qualname__}>"


class OperatorCall(PublicOp):
    """What one of Python's operators calls: it leaves it to a right operand that wants no array's operators."""

    __slots__ = ()

    def _call_slow(self, *args: object, **kwargs: object) -> Any:
        array = args[1] if len(args) == 2 and dialect.is_tensorflow else None
        if type(array) is np.ndarray and array.dtype.kind in "fiu":
            if dialect.is_spoken_in(sys._getframe(1)):  # native code calls this in the place of the operator
                array = beside(args[0], array)
            args = args[0], as_tensor(array, "operand")  # no plan for arrays, which would not ask who calls
        try:
            return super()._call_slow(*args, **kwargs)
        except ArgumentTypeError:
            if len(args) == 2 and yields_to(args[-1]):
                return NotImplemented
            raise


def yields_to(operand: object) -> bool:
    """Whether an operand says, as NumPy has it, that its own operators are the ones: a sparse or ragged tensor does."""
    kind = type(operand)
    return getattr(kind, "__array_ufunc__", kind) is None


def operation(body: Callable[P, R]) -> Callable[P, R]:
    """Let a function whose result depends on its arguments alone, and on the values of variables, have plans."""
    return cast("Callable[P, R]", PublicOp(body, is_constant=False))


def creation(body: Callable[P, R]) -> Callable[P, R]:
    """Let a function that makes the same values of the same numbers each time have plans, which show those values."""
    return cast("Callable[P, R]", PublicOp(body, is_constant=True))


@uninterruptible.loaded
def _view_calls() -> ModuleType:
    from hybridflow.eager import view_calls  # which a first operation does without

    return view_calls
