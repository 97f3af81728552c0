"""Loops while a condition holds, or for a number of iterations: ``while_loop`` and ``fori_loop``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.creation import iota
from hybridflow.compiler.ir.dtypes import int64, is_integer
from hybridflow.compiler.ir.extents import Dim
from hybridflow.control.eager_loops import run_for, run_while
from hybridflow.control.loop_state import Nest
from hybridflow.core.context import now
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentTypeError, DTypeError, ShapeError, entered


@entered
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: object = None
) -> Any:
    """Loop: ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is True.

    A list or tuple of loop variables is passed as several arguments, anything else (a tensor, a dict, a dataclass) as
    one. In a compiled function the loop is part of the program.

    Args:
        cond: a function of the loop variables that returns a bool, or a bool tensor ``[]``.
        body: a function of the loop variables that returns the next ones, of the same structure, dtypes and shapes.
        loop_vars: the first values. A Python number takes the dtype that comes out.
        maximum_iterations: the largest number of iterations; None for any.

    Returns:
        The last values, of the structure of ``loop_vars``.

    Raises:
        DTypeError: where an iteration changes a dtype.
        ShapeError: where it changes a shape.
        ArgumentTypeError: where it changes the structure.

    >>> @hf.function
    ... def steps_to_one(n):  # Collatz
    ...     def body(n, count):
    ...         return hf.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1
    ...     return hf.while_loop(lambda n, count: n != 1, body, (n, 0))[1]
    ...
    >>> steps_to_one(hf.asarray(27))
    <Tensor i64[] cpu> 111
    """
    stage = "while_loop"
    _check_callable(stage, cond, body)
    several = type(loop_vars) in (list, tuple)
    start = Nest(loop_vars, "loop_vars")

    def arguments(values: Sequence[Any]) -> Any:
        arguments_nested = start.filled(values)
        return arguments_nested if several else (arguments_nested,)

    def iteration(values: Sequence[Any]) -> list[Any]:
        result = body(*arguments(values))
        if several:
            if len(loop_vars) == 1 and type(result) not in (list, tuple):
                result = [result]
            if type(result) in (list, tuple):
                result = type(loop_vars)(result)
        nest = Nest(result, "loop_vars")
        start.check_like(stage, nest, "before an iteration", "after it")
        return nest.values

    def goes_on(values: Sequence[Any]) -> Any:
        return cond(*arguments(values))

    most = None if maximum_iterations is None else _count(stage, "maximum_iterations", maximum_iterations)
    return start.filled(run_while(stage, goes_on, iteration, start.values, start.names, most))


@entered
def fori_loop(lower: object, upper: object, body: Callable[[Any, Any], Any], init: object) -> Any:
    """Counted loop: ``value = body(i, value)`` for i from ``lower`` to ``upper`` - 1, beginning with ``init``.

    If the bounds are Python ints, the number of iterations is known at compile time.

    Args:
        lower: the first i, an int or an integer tensor ``[]``.
        upper: one more than the last i.
        body: ``body(i, value)`` takes an int64 tensor ``[]`` and the value, and returns the next value.
        init: the first value, which may be nested. Its structure, dtypes and shapes are kept, as in ``hf.while_loop``.

    Returns:
        The last value; ``init`` where there are no iterations.

    >>> @hf.function
    ... def power(x, n):
    ...     return hf.fori_loop(0, n, lambda i, y: y * x, 1.0)
    ...
    >>> power(hf.asarray(2.0), hf.asarray(10))
    <Tensor f32[] cpu> 1024.0
    """
    stage = "fori_loop"
    _check_callable(stage, body)
    start = Nest(init, "the value")
    first, end = _count(stage, "lower", lower), _count(stage, "upper", upper)

    def iteration(i: Tensor, values: Sequence[Any]) -> list[Any]:
        nest = Nest(body(i, start.filled(values)), "the value")
        start.check_like(stage, nest, "before an iteration", "after it")
        return nest.values

    if now().trace is None:
        first, end = int(first), int(end)
    if not isinstance(first, Tensor) and not isinstance(end, Tensor):
        length = end - first
        length = length if isinstance(length, Dim) else max(length, 0)
        numbers = iota((length,), 0, int64)
        if not (isinstance(first, int) and first == 0):
            numbers = numbers + first
        carries, _ = run_for(
            stage,
            length,
            lambda values, slices: (iteration(slices[0], values), ()),
            start.values,
            [numbers],
            start.names,
        )
        return start.filled(carries)
    limit = as_tensor(end, stage, int64)
    results = run_while(
        stage,
        lambda values: values[0] < limit,
        lambda values: [values[0] + 1, *iteration(values[0], values[1:])],
        [as_tensor(first, stage, int64), *start.values],
        ["i", *start.names],
    )
    return start.filled(results[1:])


def _count(stage: str, what: str, value: object) -> Any:
    """A number of iterations: an int or an extent, or an int64 tensor."""
    if type(value) is int or isinstance(value, Dim):
        return value
    if weak_kind(value) is not None and weak_kind(value) is not int:
        raise ArgumentTypeError(stage, f"{what} is {value!r}. Expected an integer.")
    x = as_tensor(value, stage)
    if x.shape:
        raise ShapeError(stage, f"{what} is {x.type}. Expected a single integer.")
    if not is_integer(x.dtype):
        raise DTypeError(stage, f"{what} is {x.type}. Expected an integer.")
    return cast(x, int64)


def _check_callable(stage: str, *functions: Callable[..., Any]) -> None:
    for function in functions:
        if not callable(function):
            raise ArgumentTypeError(stage, f"{function!r:.60} is no function.")
