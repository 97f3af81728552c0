"""What code does with one of several values, of which a tensor decides: it is done with each in a branch of its own.

What Python alone knows of all of them (whether a text is another, how long it is) takes no branches: the results are
chosen by the same code.
"""

from __future__ import annotations

import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.hooks import object_protocols
from hybridflow.autograph.runtime import branch_stack, conditional, diagnostics, except_clauses, narrowing, state
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.conditional import Conditional
from hybridflow.autograph.runtime.indexed_select import select
from hybridflow.autograph.runtime.mutable_locations import is_unbound
from hybridflow.autograph.runtime.phi import ABSENT
from hybridflow.control import tensor_array
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, HybridflowError, TraceError
from hybridflow.guards.instrumented_code import is_converted
from hybridflow.tracing.symbolic_number import is_number
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_PLAIN = (str, bytes, int, float, bool, complex, type(None), enum.Enum, type, types.FunctionType, types.MethodType)


def frame_of_user() -> FrameType:
    """The frame of converted code that runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_converted(frame.f_code):
        frame = frame.f_back
    if frame is None:
        raise ConcretizationError("convert", "a value of which a tensor decides is used outside of converted code.")
    return frame


def _unbound(choice: Choice) -> UnboundLocalError:
    name = getattr(choice, "name", None)
    return UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")


def bound(choice: Choice, frame: FrameType) -> Any:
    """A name is read, which may have no value: that is an error where the program runs."""
    for k in narrowing.remaining_options(choice):
        if is_unbound(choice.options[k]):
            _check_not(choice, k, _unbound(choice), frame)
    return narrowing.narrow(choice)


def _check_not(choice: Choice, number: int, error: BaseException, frame: FrameType) -> None:
    """Raise an error where the program runs and this option is the value."""
    left = narrowing.remaining_options(choice)
    if left == [number]:  # as far as is known the code never comes here but to fail
        left = [k for k in range(len(choice.options)) if k != number]
    except_clauses.require(frame, elementwise.not_equal(choice.code, number), error)
    narrowing.exclude(choice, number)


def each(choice: Choice, apply: Callable[[Any], Any], frame: FrameType | None = None, is_pure: bool = False) -> Any:
    """``apply`` of whatever the value is.  With ``is_pure`` it does nothing besides, and what it raises of None is
    checked first, so that what follows needs no branch."""
    frame = frame or frame_of_user()
    left = narrowing.remaining_options(choice)
    for k in left if is_pure and len(left) > 1 else ():
        option = choice.options[k]
        if not (option is None or is_unbound(option)):
            continue
        try:
            apply(option) if option is None else _raise(_unbound(choice))
        except Exception as error:
            if isinstance(error, TraceError):
                raise
            _check_not(choice, k, error, frame)
    return _of_each(choice, narrowing.remaining_options(choice), apply, frame)


def _raise(error: BaseException) -> None:
    raise error


def _of_each(choice: Choice, numbers: Sequence[int], apply: Callable[[Any], Any], frame: FrameType) -> Any:
    k, *rest = numbers
    option = choice.options[k]
    if is_unbound(option):
        raise _unbound(choice)
    if not rest:
        return apply(option)
    pred = elementwise.equal(choice.code, k)
    everything = frozenset(range(len(choice.options)))
    narrowing.note(pred, choice.code, [k], everything - {k})
    fork = Conditional(pred, frame, (), diagnostics.here(frame, "if"))
    one = _try_branch(lambda: apply(option), frame)
    fork.begin_else()
    other = _try_branch(lambda: _of_each(choice, rest, apply, frame), frame)
    if one is ABSENT and other is ABSENT:
        raise choice.refused("what is done with it fails for each of them")
    return fork.value(one, other, binds=False)


def _try_branch(run: Callable[[], Any], frame: FrameType) -> Any:
    """The result of a branch; ABSENT where it raises an error, which the program raises then."""
    path = state.active.scope
    try:
        return run()
    except Exception as error:
        is_ours = type(error).__module__.startswith("hybridflow.") and not isinstance(error, HybridflowError)
        if isinstance(error, TraceError) or is_ours:
            raise
        branch_stack.unwind(path)
        except_clauses.raise_later(frame, error, error.__cause__)
        return ABSENT


def known_of_each(choice: Choice, apply: Callable[[Any], Any]) -> Any:
    """``apply``, which does nothing besides, of whatever the value is.  Where Python, or a tensor, knows the answer for
    each, no branches are taken: what raises an error of one of them is checked first."""
    left = narrowing.remaining_options(choice)
    if not all(isinstance(choice.options[k], (*_PLAIN, SymbolicTensor)) for k in left):
        return each(choice, apply, is_pure=True)
    results: dict[int, Any] = {}
    for k in left:
        try:
            results[k] = apply(choice.options[k])
        except Exception as error:
            if isinstance(error, TraceError):
                raise
            _check_not(choice, k, error, frame_of_user())
    if not results:
        raise choice.refused("what is done with it fails for each of them")
    if all(type(value) is bool for value in results.values()):
        return narrowing.is_one_of(choice, [k for k, value in results.items() if value])
    anything = next(iter(results.values()))
    return select(choice.code, [results.get(k, anything) for k in range(len(choice.options))])


def is_same(choice: Choice, other: object) -> Any:
    """``choice is other``"""
    if is_choice(other):
        return known_of_each(other, lambda one: is_same(choice, one))
    if is_number(other) or isinstance(other, SymbolicTensor):
        raise choice.refused("it is asked whether it is one tensor or another")
    return narrowing.is_one_of(choice, [k for k, option in enumerate(choice.options) if option is other])


def truth(value: object) -> Any:
    """Something of which nothing but the truth is wanted: of a choice, and of an object whose class says it, a bool or
    a tensor of one."""
    if not is_choice(value):
        return object_protocols.truth(value)
    return known_of_each(value, lambda option: conditional.truth(option) if _is_tensor(option) else bool(option))


def _is_tensor(value: object) -> bool:
    return isinstance(value, SymbolicTensor) and value._known() is None


def one(choice: Choice, wish: str) -> Any:
    """The one value that it is.  Raises TraceError where that is not known."""
    result = narrowing.narrow(choice)
    if is_choice(result):
        raise result.refused(wish)
    return result


def of_owner(choice: Choice, look: Callable[[Any], Any]) -> Any:
    """A value of which a method is called.  What has no such method raises an error where the program runs."""
    frame = frame_of_user()
    for k in narrowing.remaining_options(choice):
        option = choice.options[k]
        if option is None or is_unbound(option):
            try:
                look(option) if option is None else _raise(_unbound(choice))
            except (AttributeError, NameError) as error:
                _check_not(choice, k, error, frame)
    return narrowing.narrow(choice)


def iterate(choice: Choice, frame: FrameType) -> Any:
    """A value whose items are taken.  What has none raises an error where the program runs."""
    for k in narrowing.remaining_options(choice):
        try:
            iter(choice.options[k])
        except TypeError as error:
            _check_not(choice, k, error, frame)
    return one(choice, "its items are taken")


def call_each(prepare: Callable[[Any], Any], choice: Choice, *args: object, **kwargs: object) -> Any:
    """A call of whatever the value is."""
    return each(choice, lambda option: prepare(option)(*args, **kwargs), frame_of_user())


class Spread:
    """A function that is no converted code, which is called with each value that its arguments may be."""

    __slots__ = ("__wrapped__",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        if not state.active.chosen:
            return self.__wrapped__(*args, **kwargs)
        return _spread(self.__wrapped__, args, kwargs)


def _spread(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    args = tuple(map(narrowing.narrow, args))
    kwargs = {name: narrowing.narrow(value) for name, value in kwargs.items()}
    for k, value in enumerate(args):
        if is_choice(value):
            return each(value, lambda one: _spread(function, (*args[:k], one, *args[k + 1 :]), kwargs))  # noqa: B023
    for name, value in kwargs.items():
        if is_choice(value):
            return each(value, lambda one: _spread(function, args, {**kwargs, name: one}))  # noqa: B023
    return function(*args, **kwargs)


KEEPS = frozenset(("append", "appendleft", "insert", "extend", "extendleft", "update"))
"""Methods that put what they are given into a container, as it is."""


def _method_of_two(name: str, is_reflected: bool, is_plain: bool) -> Callable[[Choice, Any], Any]:
    function = getattr(operator, name)
    ask = known_of_each if is_plain else functools.partial(each, is_pure=True)

    def method(self: Choice, other: object) -> Any:
        choice = narrowing.narrow(self)
        if choice is not self:
            return function(other, choice) if is_reflected else function(choice, other)
        return ask(self, lambda one: function(other, one) if is_reflected else function(one, other))

    return method


def _method_of_one(function: Callable[[Any], Any]) -> Callable[[Choice], Any]:
    return lambda self: each(self, function, is_pure=True)


def _refuse(wish: str) -> Callable[..., Any]:
    def method(self: Choice, *args: object) -> Any:
        raise self.refused(wish)

    return method


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift")


def install() -> None:
    """Give choices the operators of Python's, for code that compares and adds without asking."""
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Choice, f"__{name}__", _method_of_two(name, False, True))
    for name in (*_ARITHMETIC, "rshift"):
        method_name = name.strip("_")
        setattr(Choice, f"__{method_name}__", _method_of_two(name, False, False))
        setattr(Choice, f"__r{method_name}__", _method_of_two(name, True, False))
    for name in ("neg", "pos", "invert"):
        setattr(Choice, f"__{name}__", _method_of_one(getattr(operator, name)))
    Choice.__abs__ = _method_of_one(abs)  # type: ignore[attr-defined]
    for name, wish in (
        ("bool", "its truth is asked for where no code of the user's runs"),
        ("hash", "it is a key of a dict or an item of a set"),
        ("iter", "its items are taken"),
        ("len", "its length is asked for where no code of the user's runs"),
        ("contains", "it is asked what is in it where no code of the user's runs"),
        ("getitem", "an item is taken where no code of the user's runs"),
        ("setitem", "an item is set"),
        ("call", "it is called where no code of the user's runs"),
        ("index", "it is a size or a position"),
        ("int", "int() is asked for"),
        ("float", "float() is asked for"),
        ("enter", "it is the manager of a with"),
    ):
        setattr(Choice, f"__{name}__", _refuse(wish))


def _elements(choice: Choice, error: BaseException | None) -> tuple[Tensor | None, Tensor | None]:
    """The elements of an array, if it has any, and what decides whether it has; ``error`` is raised unless it has."""
    left = narrowing.remaining_options(choice)
    absent, there = ([k for k in left if (choice.options[k] is None) is wanted] for wanted in (True, False))
    if len(there) > 1:
        raise choice.refused("an array has elements of one shape")
    if not there:
        return None, None
    if absent and error is not None:
        _check_not(choice, absent[0], error, frame_of_user())
    return choice.options[there[0]], elementwise.equal(choice.code, there[0]) if absent else None


tensor_array.one_of_either.append(_elements)
tensor_array.shape_of_either.append(
    lambda choice: known_of_each(choice, lambda values: None if values is None else values.shape[1:])
)
install()
