"""Derivatives as functions of functions: ``grad`` and ``value_and_grad``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.autodiff.tape import GradientTape
from hybridflow.compiler.ir.dtypes import is_complex, is_inexact
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, HybridflowError, ShapeError, entered


@entered
def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Value and gradient of a scalar function, in reverse mode.

    Works on compiled functions, and may itself be compiled or differentiated again.

    Args:
        function: returns one float; with ``has_aux`` a pair of that and anything else.
        argnums: with respect to which positional arguments: an int, or several, for which there is a tuple of
            gradients. Each may be nested. Numbers and NumPy arrays among them become tensors.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments that returns ``(value, gradient)``, or ``((value, aux), gradient)``. A gradient
        has its argument's structure, shapes and dtypes, and zeros where the value does not depend on it.

    Raises:
        ArgumentError: when it is called without an argument of ``argnums``.
        DTypeError: when one of these, or the value, is not a float.
        ShapeError: when the value is not a scalar.

    >>> hf.value_and_grad(lambda x: hf.sum(x**2))(hf.asarray([1.0, 2.0]))
    (<Tensor f32[] cpu> 5.0, <Tensor f32[2] cpu> [2. 4.])
    """
    return _derived(function, argnums, has_aux, "value_and_grad")


@entered
def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Gradient of a scalar function, in reverse mode.

    Args:
        function: as that of ``hf.value_and_grad``.
        argnums: the index of the argument to differentiate by, or a tuple of indices for a tuple of results.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments that returns the gradient; with ``has_aux`` the pair ``(gradient, aux)``.

    Raises:
        ArgumentError: when it is called without an argument of ``argnums``.
        DTypeError: when one of these, or the value, is not a float.
        ShapeError: when the value is not a scalar.

    >>> hf.grad(lambda p: p["a"] * p["b"])({"a": 2.0, "b": 3.0})
    {'a': <Tensor f32[] cpu> 3.0, 'b': <Tensor f32[] cpu> 2.0}
    """
    both = _derived(function, argnums, has_aux, "grad")

    def gradient_of(*args: object, **kwargs: object) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return named(entered(gradient_of), function, "grad")


def named(derived: Callable[..., Any], function: Callable[..., Any], stage: str) -> Callable[..., Any]:
    functools.update_wrapper(derived, function, updated=())
    derived.__name__ = f"{stage}_{getattr(function, '__name__', 'function').strip('<>')}"
    return derived


def _derived(
    function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, stage: str
) -> Callable[..., Any]:
    if not callable(function):
        raise ArgumentTypeError(stage, f"{function!r} is not callable; give a function that returns the loss.")
    several = isinstance(argnums, (tuple, list))
    numbers = numbers_of(argnums if several else [argnums], stage)

    def value_and_gradient_of(*args: object, **kwargs: object) -> Any:
        positions = positions_of(numbers, len(args), stage)
        arguments = list(args)
        for position in positions:
            arguments[position] = apart(args[position], position, stage)
        chosen = tuple([arguments[position] for position in positions])
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(chosen)
            result = function(*arguments, **kwargs)
        value = _value(result, has_aux, stage)
        gradients = tape.gradient(value, chosen, unconnected_gradients="zero")
        return result, gradients if several else gradients[0]

    return named(entered(value_and_gradient_of), function, stage)


def numbers_of(argnums: Any, stage: str) -> list[int]:
    try:
        return list(map(operator.index, argnums))
    except TypeError:
        raise ArgumentTypeError(stage, f"argnums is {argnums!r}; give positions, as in argnums=(0, 1).") from None


def positions_of(numbers: Sequence[int], count: int, stage: str) -> list[int]:
    """The positions from the left.  Raises ArgumentError where there is no such argument, or one comes twice."""
    for number in numbers:
        if not -count <= number < count:
            raise ArgumentError(
                stage,
                f"argnums names the positional argument {number}, and the call has {count}. Arguments by keyword are "
                "not differentiated.",
            )
    result = [number % count for number in numbers]
    if len(set(result)) < len(result):
        raise ArgumentError(stage, f"argnums names an argument twice: {tuple(numbers)}.")
    return result


def apart(value: object, position: int, stage: str) -> Any:
    """An argument with tensors of its own, told from those that the function meets elsewhere; variables stay."""
    leaves, structure = pytree.flatten(value)
    copies: list[Any] = []
    for k, leaf in enumerate(leaves):
        try:
            tensor = leaf if isinstance(leaf, (Tensor, Variable)) else as_tensor(leaf, stage)
        except HybridflowError as error:
            path = pytree.paths(structure, f"argument {position}")[k]
            raise ArgumentTypeError(stage, f"{path} is a {type(leaf).__name__}, which has no gradient.") from error
        if not is_inexact(tensor.dtype):
            path = pytree.paths(structure, f"argument {position}")[k]
            raise DTypeError(
                stage, f"{path} is {tensor.type}; only floats have gradients. Convert it, or name others by argnums."
            )
        copies.append(tensor if isinstance(tensor, Variable) else apply(_RESHAPE, tensor, shape=tensor.shape))
    return pytree.unflatten(structure, copies)


_RESHAPE = TABLE["reshape"]


def _value(result: Any, has_aux: bool, stage: str) -> Tensor:
    """The scalar that is differentiated."""
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentTypeError(stage, "with has_aux the function must return a pair (value, anything else).")
    value = result[0] if has_aux else result
    if isinstance(value, Variable) or weak_kind(value) is not None:
        value = as_tensor(value, stage)  # the gradient of a number is zero
    if not isinstance(value, Tensor):
        what = f"a {type(value).__name__}"
        hint = " Give has_aux=True if it is (value, anything else)." if isinstance(value, tuple) else ""
        raise ArgumentTypeError(stage, f"the function returned {what}; it must return a tensor.{hint}")
    if value.shape:
        raise ShapeError(stage, f"the function returned {value.type}; a gradient is that of a scalar: hf.sum it.")
    if is_complex(value.dtype):
        raise DTypeError(
            stage, f"the function returned {value.type}; what a gradient increases is real: take hf.real of it."
        )
    if not is_inexact(value.dtype):
        raise DTypeError(stage, f"the function returned {value.type}; only floats have gradients.")
    return value
