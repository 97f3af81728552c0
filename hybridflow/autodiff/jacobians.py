"""Derivatives of functions with any results: ``jvp``, ``vjp``, ``linearize``, Jacobians and Hessians.

Names, arguments and structures are JAX's.  Derivatives of results that do not depend on what is differentiated are
zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.autodiff.forward_mode import ForwardAccumulator, checked_tangent, pushed_through
from hybridflow.autodiff.functional import apart, named, numbers_of, positions_of
from hybridflow.autodiff.tape import GradientTape
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.core import pytree
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered
from hybridflow.runtime.uninterruptible import loaded

Function = Callable[..., Any]


def _check(stage: str, function: object) -> None:
    if not callable(function):
        raise ArgumentTypeError(stage, f"{function!r:.60} is not callable; the function comes first.")


def _split(stage: str, result: object, has_aux: bool) -> tuple[Any, Any]:
    """The result that is differentiated, and what comes with it."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentTypeError(stage, "with has_aux the function must return a pair (result, anything else).")
    return result


def _tensors(stage: str, result: object) -> tuple[list[Tensor], pytree.Structure]:
    """What a function returned as tensors, and how they are nested."""
    leaves, structure = pytree.flatten(result)
    tensors: list[Tensor] = []
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Variable) or weak_kind(leaf) is not None:
            leaf = as_tensor(leaf, stage)  # the derivative of a number is zero
        if not isinstance(leaf, Tensor):
            path = pytree.paths(structure, "the result")[k]
            raise ArgumentTypeError(
                stage, f"{path} is a {type(leaf).__name__}; the function must return tensors. With has_aux=True it may "
                "return a pair (tensors, anything else)."
            )  # fmt: skip
        tensors.append(leaf)
    return tensors, structure


def _zeros(tangents: Sequence[Tensor | None], like: Sequence[Any]) -> list[Tensor]:
    return [builder.full(0, x.type) if t is None else t for t, x in zip(tangents, like)]


def _primals(stage: str, primals: object) -> tuple[Any, ...]:
    if not isinstance(primals, (tuple, list)):
        raise ArgumentTypeError(stage, f"primals are a {type(primals).__name__}; give a tuple, one for each argument.")
    return tuple([apart(x, k, stage) for k, x in enumerate(primals)])


def _matching(stage: str, values: object, tangents: object, what: str) -> list[Tensor]:
    """Tangents or cotangents, one for each tensor among ``values``."""
    leaves, structure = pytree.flatten(values)
    try:
        tangent_leaves = pytree.flatten_up_to(structure, tangents, "tangents")
    except ValueError as error:
        raise ArgumentError(stage, f"{error}, as in the {what}.") from None
    paths = pytree.paths(structure, what)
    return [checked_tangent(stage, x, t, path) for x, (_, t), path in zip(leaves, tangent_leaves, paths)]


@entered
def jvp(function: Function, primals: object, tangents: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Jacobian-vector product (JVP): the value of a function and its tangent, in forward mode.

    Args:
        function: a function of tensors.
        primals: a tuple with an entry for each argument, which may be nested.
        tangents: a tuple of the structure of ``primals``: the directions along which they move.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        ``(function(*primals), its tangent)``; with ``has_aux`` the second part comes third.

    >>> hf.jvp(lambda x, y: x * y, (hf.asarray(3.0), hf.asarray(5.0)), (1.0, 10.0))
    (<Tensor f32[] cpu> 15.0, <Tensor f32[] cpu> 35.0)
    """
    _check("jvp", function)
    inputs = _primals("jvp", primals)
    moved = _matching("jvp", inputs, tuple(tangents) if isinstance(tangents, list) else tangents, "primals")
    with ForwardAccumulator(pytree.flatten(inputs)[0], moved) as accumulator:
        result, aux = _split("jvp", function(*inputs), has_aux)
        leaves, structure = _tensors("jvp", result)
    tangents_out = _zeros(accumulator.jvp(leaves), leaves)
    pair = pytree.unflatten(structure, leaves), pytree.unflatten(structure, tangents_out)
    return (*pair, aux) if has_aux else pair


@entered
def vjp(function: Function, *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Vector-Jacobian product (VJP): the value of a function, and its pullback, in reverse mode.

    Args:
        function: a function of tensors.
        *primals: its arguments.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        ``(function(*primals), pull)``: ``pull(cotangents)``, of the structure of the result, returns the tuple of those
        of the primals. It may be called any number of times. With ``has_aux`` the second part comes third.

    >>> y, pull = hf.vjp(lambda x: x**2, hf.asarray([1.0, 2.0]))
    >>> pull(hf.asarray([1.0, 10.0]))
    (<Tensor f32[2] cpu> [ 2. 40.],)
    """
    _check("vjp", function)
    inputs = _primals("vjp", primals)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        result, aux = _split("vjp", function(*inputs), has_aux)
        leaves, structure = _tensors("vjp", result)
    arguments = pytree.unflatten(structure, leaves)

    @entered
    def pull(cotangents: object) -> Any:
        floats = [x if is_inexact(x.dtype) else None for x in leaves]
        try:
            parts = pytree.flatten_up_to(structure, cotangents, "cotangents")
        except ValueError as error:
            raise ArgumentError("vjp", f"{error}, as in the result.") from None
        paths = pytree.paths(structure, "the result")
        seeds = [
            None if x is None else checked_tangent("vjp", x, g, path) for x, (_, g), path in zip(floats, parts, paths)
        ]
        return tape.gradient(leaves, inputs, seeds, unconnected_gradients="zero")

    return (arguments, pull, aux) if has_aux else (arguments, pull)


@entered
def linearize(function: Function, *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Linearisation: the value of a function, and its JVP at that point as a function.

    Args:
        function: a function of tensors.
        *primals: its arguments.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        ``(function(*primals), push)``: ``push(*tangents)`` is the tangent of the result, without computing that again.
        With ``has_aux`` the second part comes third.

    >>> y, push = hf.linearize(lambda x: hf.sin(x), hf.asarray(0.0))
    >>> push(2.0)
    <Tensor f32[] cpu> 2.0
    """
    _check("linearize", function)
    inputs = _primals("linearize", primals)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        result, aux = _split("linearize", function(*inputs), has_aux)
        leaves, structure = _tensors("linearize", result)
    arguments = pytree.unflatten(structure, leaves)

    @entered
    def push(*tangents: object) -> Any:
        moved = _matching("linearize", inputs, tangents, "primals")
        seeds = list(zip(pytree.flatten(inputs)[0], moved))
        return pytree.unflatten(structure, _zeros(_pushed(tape, seeds, leaves), leaves))

    return (arguments, push, aux) if has_aux else (arguments, push)


def _pushed(tape: GradientTape, seeds: Sequence[tuple[Any, Tensor]], targets: Sequence[Tensor]) -> list[Any]:
    """The tangents of what a tape recorded; variables move as often as they were read."""
    starts = [(x, t) for value, t in seeds for x in tape._parts_of(value)]
    return pushed_through(tape._records(), starts, targets)


# ---- Jacobians


@entered
def jacrev(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Jacobian in reverse mode: one row for each element of the result, all at once.

    It is the better way where results have fewer elements than arguments. Results and arguments may be nested.

    Args:
        function: a function of tensors.
        argnums: the index of the argument to differentiate by, or a tuple of indices for a tuple of results.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments. For each tensor of the result it returns the structure of the arguments, whose
        entries have the result's shape and then the argument's. With ``has_aux`` it returns the pair (Jacobian, second
        part).

    >>> hf.jacrev(lambda x: x * hf.sum(x))(hf.asarray([1.0, 2.0]))
    <Tensor f32[2,2] cpu>
    [[4. 1.]
     [2. 5.]]
    """
    return _jacobian("jacrev", function, argnums, has_aux, _rows)


@entered
def jacfwd(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Jacobian in forward mode: one column for each element of the arguments, all at once.

    It is the better way where arguments have fewer elements than results.

    Args:
        function: a function of tensors.
        argnums: the index of the argument to differentiate by, or a tuple of indices for a tuple of results.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments that returns the Jacobian, as that of ``hf.jacrev`` does.

    >>> hf.jacfwd(lambda t: hf.stack([hf.cos(t), hf.sin(t)]))(hf.asarray(0.0))
    <Tensor f32[2] cpu> [0. 1.]
    """
    return _jacobian("jacfwd", function, argnums, has_aux, _columns)


@entered
def jacobian(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Jacobian by ``hf.jacrev`` or ``hf.jacfwd``, whichever needs fewer rows or columns for the shapes at hand.

    Args:
        function: a function of tensors.
        argnums: the index of the argument to differentiate by, or a tuple of indices for a tuple of results.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments that returns the Jacobian, as that of ``hf.jacrev`` does.

    >>> hf.jacobian(lambda x: x**2)(hf.asarray([1.0, 2.0]))
    <Tensor f32[2,2] cpu>
    [[2. 0.]
     [0. 4.]]
    """

    def shorter(tape: GradientTape, results: Sequence[Tensor], sources: Sequence[Any]) -> list[list[Tensor]]:
        rows, columns = (sum([x.type.size for x in side]) for side in (results, sources))
        forwards = isinstance(rows, int) and isinstance(columns, int) and columns < rows
        return (_columns if forwards else _rows)(tape, results, sources)

    return _jacobian("jacobian", function, argnums, has_aux, shorter)


@entered
def hessian(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Hessian: second derivatives of a function, forward mode over reverse mode, all columns at once.

    Args:
        function: a function of tensors.
        argnums: the index of the argument to differentiate by, or a tuple of indices for a tuple of results.
        has_aux: whether ``function`` returns a pair; the second part is returned unchanged.

    Returns:
        A function of the same arguments. For each entry of the gradient (of the Jacobian, where the result is no
        scalar) it returns the structure of the arguments; see ``hf.jacrev``.

    >>> hf.hessian(lambda x: hf.sum(x) ** 3)(hf.asarray([1.0, 2.0]))
    <Tensor f32[2,2] cpu>
    [[18. 18.]
     [18. 18.]]
    """
    _check("hessian", function)
    return named(jacfwd(jacrev(function, argnums, has_aux), argnums, has_aux), function, "hessian")


_Ways = Callable[[GradientTape, Sequence[Tensor], Sequence[Any]], list[list[Tensor]]]


def _jacobian(stage: str, function: Function, argnums: object, has_aux: bool, ways: _Ways) -> Function:
    _check(stage, function)
    several = isinstance(argnums, (tuple, list))
    numbers = numbers_of(argnums if several else [argnums], stage)

    def jacobian_of(*args: object, **kwargs: object) -> Any:
        positions = positions_of(numbers, len(args), stage)
        arguments = list(args)
        for position in positions:
            arguments[position] = apart(args[position], position, stage)
        chosen = tuple([arguments[position] for position in positions])
        sources, structure = pytree.flatten(chosen)
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(chosen)
            result, aux = _split(stage, function(*arguments, **kwargs), has_aux)
            leaves, shape = _tensors(stage, result)
        entries = []
        for row in ways(tape, leaves, sources):
            entry = pytree.unflatten(structure, row)
            entries.append(entry if several else entry[0])
        jacobian = pytree.unflatten(shape, entries)
        return (jacobian, aux) if has_aux else jacobian

    return named(entered(jacobian_of), function, stage)


def _rows(tape: GradientTape, results: Sequence[Tensor], sources: Sequence[Any]) -> list[list[Tensor]]:
    return [tape.jacobian(result, list(sources), unconnected_gradients="zero") for result in results]


@loaded
def _examples() -> Any:
    from hybridflow.tracing import batch_trace  # which gradients do without

    return batch_trace


def _columns(tape: GradientTape, results: Sequence[Tensor], sources: Sequence[Any]) -> list[list[Tensor]]:
    examples = _examples()
    by_result: list[list[Tensor]] = [[] for _ in results]
    for source in sources:
        seeds = examples.one_hots(source.type)
        size = seeds.shape[0]

        def tangents(seed: list[Tensor], source: object = source) -> list[Any]:
            return _pushed(tape, [(source, seed[0])], results)

        columns, own_columns = examples.over_examples("jacfwd", tangents, [seeds], size)
        for row, result, column, flag in zip(by_result, results, columns, own_columns):
            shape = (*result.shape, *source.shape)
            if column is None:
                row.append(builder.full(0, result.type.with_shape(shape)))
                continue
            wide = axis_to_front(builder, column, flag, size)
            rank = len(wide.shape)
            row.append(builder.reshape(builder.transpose(wide, perm=(*range(1, rank), 0)), shape=shape))
    return by_result
