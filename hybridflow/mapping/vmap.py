"""``vmap`` and ``vectorized_map``: a function of one example, applied to many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.array.shapes import moveaxis, reshape
from hybridflow.autodiff.functional import named
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops import type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.control.loop_state import is_value
from hybridflow.core import pytree
from hybridflow.core.string_tensor import is_string
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, AxisError, DTypeError, ShapeError, entered
from hybridflow.jit.python_wrappers import converted
from hybridflow.mapping.axes import size_of, spread
from hybridflow.tracing.batch_trace import over_examples

_RANDOM = ("different", "same", "error")


@entered
def vmap(
    function: Callable[..., Any],
    in_axes: object = 0,
    out_axes: object = 0,
    axis_size: int | None = None,
    randomness: str = "different",
) -> Callable[..., Any]:
    """Vectorising map: apply a function to many examples at once.

    The function is traced for one example, with tensors that have no values. If examples take different branches, all
    branches are computed, and results are selected. Loops run until all examples are done. Errors and effects happen
    only for examples that reach them, and each effect for all examples before the next effect.

    It can be nested, differentiated and compiled, and applied to differentiated or compiled functions.

    Args:
        function: a function of tensors.
        in_axes: the axes of the arguments to map over. An int for all arguments, or a tuple with an entry for each
            positional one: an int, None for an argument that all examples share, or a tree of these. Keyword arguments
            are mapped over axis 0.
        out_axes: the same for results; None for a result that does not depend on the examples. Negative axes count
            from the end.
        axis_size: the number of examples; needed if no argument is mapped.
        randomness: "different" draws different random numbers for each example, from split generators. "same" draws
            the same numbers for all, and "error" forbids drawing.

    Returns:
        A function of the same arguments that returns the results of all examples, stacked along ``out_axes``.

    Raises:
        ShapeError: if mapped sizes differ.
        AxisError: if an argument lacks its axis.
        ArgumentError: if ``in_axes`` lacks an entry for a positional argument.
        ArgumentTypeError: if the structure of an entry differs from that of its argument.

    >>> x = hf.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> hf.vmap(hf.vecdot, in_axes=(0, None))(x, hf.asarray([1.0, 10.0]))
    <Tensor f32[2] cpu> [21. 43.]
    >>> hf.vmap(hf.grad(lambda w: hf.sum(w**3)))(x)
    <Tensor f32[2,2] cpu>
    [[ 3. 12.]
     [27. 48.]]
    """
    if not callable(function):
        raise ArgumentTypeError("vmap", f"{function!r:.60} is no function; the function comes first.")
    if randomness not in _RANDOM:
        raise ArgumentError("vmap", f"randomness is {randomness!r}. Expected one of {', '.join(_RANDOM)}.")

    def mapped(*args: object, **kwargs: object) -> Any:
        axes = in_axes if in_axes is None or not isinstance(in_axes, (tuple, list)) else tuple(in_axes)
        if isinstance(axes, tuple) and len(axes) != len(args):
            raise ArgumentError(
                "vmap", f"in_axes has {len(axes)} entries, and the call {len(args)} arguments by position."
            )
        leaf_axes = spread("vmap", axes, args, "in_axes", "arguments") + [0] * len(pytree.flatten(kwargs)[0])
        return _mapped("vmap", function, (args, kwargs), leaf_axes, out_axes, axis_size, randomness)

    return named(entered(mapped), function, "vmap")


@entered
def vectorized_map(
    fn: Callable[[Any], Any], elems: object, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Vectorised map of a function over the slices of tensors along their first axes, all at once.

    What holds for ``hf.vmap`` holds here.

    Args:
        fn: ``fn(x)`` takes a slice, of the structure of ``elems``; what it returns may be nested.
        elems: a tensor, or nested ones of one length.
        fallback_to_while_loop: has no say: every operation can be vectorised.
        warn: has no say.

    Returns:
        The results, stacked along a new first axis.

    >>> hf.vectorized_map(lambda x: x[0] @ x[1], (hf.ones((5, 2, 3)), hf.ones((5, 3)))).shape
    (5, 2)
    """
    if not callable(fn):
        raise ArgumentTypeError("vectorized_map", f"{fn!r:.60} is no function; the function comes first.")
    axes = [0] * len(pytree.flatten(elems)[0])
    return _mapped("vectorized_map", fn, ((elems,), {}), axes, 0, None, "different")


def _mapped(
    stage: str,
    function: Callable[..., Any],
    arguments: object,
    axes: list[Any],
    out_axes: object,
    size: object,
    randomness: str,
) -> Any:
    leaves, structure = pytree.flatten(arguments)
    paths = _paths(arguments)
    places = [k for k, (leaf, axis) in enumerate(zip(leaves, axes)) if axis is not None and is_value(leaf)]
    tensors = [as_tensor(leaves[k], stage) for k in places]
    for k, x in zip(places, tensors):
        if is_string(x.dtype):
            raise DTypeError(stage, f"{paths[k]} is {x.type}: texts are not mapped. hf.strings takes whole tensors.")
    count = size_of(stage, size, [(paths[k], x, axes[k]) for k, x in zip(places, tensors)])
    results_of_function: list[Any] = []

    def body(examples: list[Tensor]) -> list[Tensor]:
        replaced = list(leaves)
        for k, x in zip(places, examples):
            replaced[k] = x
        args, kwargs = pytree.unflatten(structure, replaced)
        results_of_function.append(pytree.flatten(converted(function, stage)(*args, **kwargs)))
        for leaf in results_of_function[0][0]:
            if hasattr(type(leaf), "why_no_result"):
                raise leaf.why_no_result()
        return [as_tensor(leaf, stage) for leaf in results_of_function[0][0] if is_value(leaf)]

    xs = [x if axes[k] in (0, -len(x.shape)) else moveaxis(x, axes[k], 0) for k, x in zip(places, tensors)]
    results, replaced = over_examples(stage, body, xs, count, randomness)
    result_leaves, shape = results_of_function[0]
    result = pytree.unflatten(shape, result_leaves)
    wanted = spread(stage, out_axes, result, "out_axes", "the result")
    stacked = iter(zip(results, replaced))
    placed = [
        _placed(stage, *next(stacked), axis, count) if is_value(leaf) else leaf
        for leaf, axis in zip(result_leaves, wanted)
    ]
    return pytree.unflatten(shape, placed)


def _paths(arguments: Any) -> list[str]:
    args, kwargs = arguments
    paths = [path for k, x in enumerate(args) for path in pytree.paths(pytree.flatten(x)[1], f"argument {k}")]
    return paths + [
        path for name in sorted(kwargs) for path in pytree.paths(pytree.flatten(kwargs[name])[1], f"argument {name!r}")
    ]


def _placed(stage: str, x: Any, is_batched: bool, axis: int | None, size: Extent) -> Tensor:
    """A result with the axis of the examples where it is wanted."""
    if axis is None:
        if is_batched:
            raise ArgumentError(
                stage, "out_axes is None for a result that depends on the examples. Give the axis to stack it along."
            )
        return x
    x = axis_to_front(builder, x, is_batched, size)
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise AxisError(stage, f"out_axes has {axis} for a result that is {x.type} when it is stacked.")
    return x if axis in (0, -rank) else moveaxis(x, 0, axis)


@entered
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: object, **kwargs: object) -> Tensor:
    """Application of a function of vectors to all vectors along an axis.

    The function is traced once, as ``hf.vmap`` traces it.

    Args:
        func1d: a function of a vector that returns a tensor.
        axis: the axis of the vectors.
        arr: a tensor, array, nested list or number.
        *args: further arguments of the function.
        **kwargs: the same by name.

    Returns:
        A tensor in which the axes of what the function returns stand in the place of ``axis``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentTypeError: where the function returns no tensor.

    >>> hf.apply_along_axis(lambda x: x / hf.sum(x), 1, [[1.0, 3.0], [2.0, 2.0]])
    <Tensor f32[2,2] cpu>
    [[0.25 0.75]
     [0.5  0.5 ]]
    """
    x = as_tensor(arr, "apply_along_axis")
    axis = type_rules.axis("apply_along_axis", x.type, axis)
    lines = moveaxis(x, axis, -1)
    outer = lines.shape[:-1]
    if any(n == 0 for n in outer):
        raise ShapeError("apply_along_axis", f"there is no vector along axis {axis} of {x.type}.")
    result = vmap(lambda line: as_result(func1d(line, *args, **kwargs)))(reshape(lines, (-1, lines.shape[-1])))
    inner = result.shape[1:]
    result = reshape(result, (*outer, *inner))
    return moveaxis(result, tuple(range(-len(inner), 0)), tuple(range(axis, axis + len(inner)))) if inner else result


def as_result(value: object) -> Tensor:
    if value is None:
        raise ArgumentTypeError("apply_along_axis", "the function returns None. Expected a tensor.")
    return as_tensor(value, "apply_along_axis")
