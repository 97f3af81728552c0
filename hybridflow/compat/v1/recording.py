"""Functions that become operations of a graph where one is built, and are called as they are everywhere else.

Shapes are found by tracing the function on inputs without values.  Extents that are not known are stood for by two
sizes, one after the other: what comes out differently is not known either.
"""

from __future__ import annotations

__traits__ = ("between",)

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.array.random import Generator
from hybridflow.compat.v1.graph import Graph, default_graph
from hybridflow.compat.v1.graph_stack import computing, is_recording
from hybridflow.compat.v1.nodes import Info, Operation, Tensor
from hybridflow.compiler.ir.dtypes import int32, is_float
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.context import suspended, tracing
from hybridflow.core.tensor import Tensor as Value
from hybridflow.core.variable import Variable
from hybridflow.errors import HybridflowError
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


# Sizes of what is not known: with many divisors, since programs reshape by -1.
_SIZES = (5040, 10080)
_RANKS = (0, 1, 2, 3, 4)  # of a tensor whose rank is not known
_FEW = 64  # elements of a constant that is known while the graph is built


@pytree.declare_leaf
class Sizes(tuple[Any, ...]):
    """The value of ``tf.shape(x)``: extents, which a compiled program may know by name only."""

    __slots__ = ()


class Recorded:
    """A function whose calls are operations of the type where a graph is built.

    ``draws``: it takes a ``generator``; ``of_sizes`` does the same to extents, or returns NotImplemented.  With
    ``by_default`` it records where no graph is open.  ``attributes`` makes attributes of the operation of arguments by
    name, where they are not those arguments that are plain values.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        type: str,
        name: str | None = None,
        draws: bool = False,
        of_sizes: Callable[..., Any] | None = None,
        by_default: bool = True,
        attributes: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.type, self.default_name = function, type, name or type
        self.draws, self.of_sizes, self.by_default, self.attributes = draws, of_sizes, by_default, attributes

    def __repr__(self) -> str:
        return f"<function {self.function.__name__}>"

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        seed = kwargs.pop("op_seed", None)
        if not self.by_default and not is_recording(False):
            return self.function(*args, **kwargs)
        leaves, structure = pytree.flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if is_symbolic(leaf)]
        if not places and not is_recording(self.by_default):
            return self.function(*args, **kwargs)
        if not places and any(isinstance(leaf, SymbolicTensor) for leaf in leaves):  # an activation in a layer
            return self.function(*args, **kwargs)
        graph = default_graph()
        inputs = [as_graph_tensor(leaves[k]) for k in places]
        if inputs:
            graph = inputs[0].graph
        kept = [np.array(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        call = _Call(self, kept, structure, places)
        return call.recorded(graph, inputs, name or self.default_name, seed)


class _Call:
    """A call that is recorded: the function, its arguments, and where the inputs stand among them."""

    def __init__(self, recorded: Recorded, leaves: list[Any], structure: Any, places: list[int]) -> None:
        self._function, self._leaves, self._structure, self._places = recorded, leaves, structure, places
        self._wanted: list[int] = []  # which leaves of the result are tensors

    def made(self, values: Sequence[Any], generator: Generator | None) -> Any:
        leaves = list(self._leaves)
        for place, value in zip(self._places, values):
            leaves[place] = value
        args, kwargs = pytree.unflatten(self._structure, leaves)
        recorded = self._function
        if recorded.of_sizes is not None and any(is_size(value) for value in values):
            result = recorded.of_sizes(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if recorded.draws:
            kwargs["generator"] = generator
        with computing():  # functions that it calls may record, too
            result = recorded.function(*args, **kwargs)
        leaves, structure = pytree.flatten(result)
        if any(isinstance(leaf, np.ndarray) for leaf in leaves):  # one that came in, or a part of it
            result = pytree.unflatten(structure, [asarray(x) if isinstance(x, np.ndarray) else x for x in leaves])
        return result

    def compute(self, run: Any, values: Sequence[Any]) -> list[Any]:
        generator = run.generator() if self._function.draws else None
        leaves = pytree.flatten(self.made(values, generator))[0]
        return [leaves[k] for k in self._wanted]

    def recorded(self, graph: Graph, inputs: Sequence[Tensor], name: str, seed: int | None) -> Any:
        """The result, with tensors of the graph in the place of values."""
        leaves: list[Any]
        if any(t.info.shape is None for t in inputs):
            result = _of_some_ranks(self._inferring, [t.info for t in inputs])
            leaves, structure = pytree.flatten(result)
        else:
            result = inferred(self._inferring, [t.info for t in inputs], not self._function.draws)
            leaves, structure = pytree.flatten(result)
            if self._function.draws:
                leaves = [leaf._replace(known=None) if isinstance(leaf, Info) else leaf for leaf in leaves]
        self._wanted = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Info)]
        attributes = self._attributes()
        op = graph.add(self._function.type, name, inputs, [leaves[k] for k in self._wanted], self.compute, attributes)
        if self._function.draws:
            op.source = (graph.seed, seed)
        for k, tensor in zip(self._wanted, op.outputs):
            leaves[k] = tensor
        return pytree.unflatten(structure, leaves)

    def _attributes(self) -> dict[str, Any]:
        """Arguments that are plain values, by name, with the defaults of those that are not given."""
        args, kwargs = pytree.unflatten(self._structure, self._leaves)
        try:
            bound = inspect.signature(self._function.function).bind(*args, **kwargs)
        except (TypeError, ValueError):  # a function that has no signature of its own
            return {}
        bound.apply_defaults()
        if self._function.attributes is not None:
            return self._function.attributes(bound.arguments)
        return {name: value for name, value in bound.arguments.items() if _is_plain(value)}

    def _inferring(self, values: Sequence[Any]) -> Any:
        return self.made(values, _any_generator() if self._function.draws else None)


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(x, int) for x in value)
    return isinstance(value, (bool, int, float, str, np.dtype))


@functools.cache
def _any_generator() -> Generator:
    with suspended():
        return Generator(0)


def is_symbolic(value: object) -> bool:
    """Whether a value is a graph's tensor, or something that stands for one."""
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_tensor")


def as_graph_tensor(value: Any) -> Tensor:
    """The tensor that is meant by one, or by a variable."""
    result: Tensor = value if isinstance(value, Tensor) else value._as_graph_tensor()
    return result


def is_size(value: TensorLike) -> bool:
    """Whether a value is made of extents."""
    return isinstance(value, (Sizes, Dim)) or type(value) is int


# ---- what is known before a graph is run


def inferred(function: Callable[[Sequence[Any]], Any], infos: Sequence[Info], is_pure: bool = True) -> Any:
    """The result of a function of tensors, nested as it is, with what is known of each in its place.

    What ``is_pure`` makes of known integers is known.  Raises the function's error where all shapes are known.
    """
    if is_pure and infos and all(info.known is not None and not is_float(info.dtype) for info in infos):
        count = max(len(info.known or ()) for info in infos)
        results = [_computed(function, infos, k) for k in range(count)]
        return _joined(results)
    is_open = any(None in (info.shape or ()) or len(info.known or ()) > 1 for info in infos)
    try:
        result = _joined([_traced(function, infos, k, _SIZES[k]) for k in range(2 if is_open else 1)])
        if is_pure and not infos and all(map(_is_small, pytree.flatten(result)[0])):
            return _joined([_computed(function, infos, 0)])
        return result
    except (HybridflowError, ValueError, TypeError, IndexError):
        if not is_open:
            raise
        return _guessed(function, infos)


def _of_some_ranks(function: Callable[[Sequence[Any]], Any], infos: Sequence[Info]) -> Any:
    """The same, where a rank is not known: the dtypes of results, and the shape of one that has it for every rank that
    the function takes."""
    results = []
    for rank in _RANKS:
        guessed_infos = [
            Info((None,) * rank if info.shape is None else info.shape, info.dtype, info.known, info.is_size)
            for info in infos
        ]
        try:
            results.append(_joined([_traced(function, guessed_infos, 0, _SIZES[0])]))
        except (HybridflowError, ValueError, TypeError, IndexError, AttributeError):
            continue
    if not results:
        return Info(None, next((info.dtype for info in infos), None))
    first, structure = pytree.flatten(results[0])
    same = [result for result in results if pytree.flatten(result)[1] == structure]
    leaves = []
    for k, leaf in enumerate(first):
        if isinstance(leaf, Info):
            shapes = {pytree.flatten(result)[0][k].shape for result in same}
            leaf = Info(leaf.shape if shapes == {()} else None, leaf.dtype)
        leaves.append(leaf)
    return pytree.unflatten(structure, leaves)


def _is_small(leaf: object) -> bool:
    """Whether a result is a few integers, which may be sizes."""
    return isinstance(leaf, Info) and not is_float(leaf.dtype) and math.prod(x or 0 for x in leaf.shape or ()) <= _FEW


def _guessed(function: Callable[[Sequence[Any]], Any], infos: Sequence[Info]) -> Any:
    """The same, where unknown extents are no two of the usual sizes: the rank, if some sizes fit."""
    others = {extent for info in infos for extent in info.shape or () if extent is not None}
    for size in (1, *sorted(others)):
        try:
            result = _joined([_traced(function, infos, 0, size)])
        except (HybridflowError, ValueError, TypeError, IndexError):
            continue
        leaves, structure = pytree.flatten(result)
        opened = [
            leaf._replace(shape=(None,) * len(leaf.shape or ()), known=None) if isinstance(leaf, Info) else leaf
            for leaf in leaves
        ]
        return pytree.unflatten(structure, opened)
    return Info(None, next((info.dtype for info in infos), None))


def _known_value(info: Info, number: int) -> Any:
    known = info.known or ()
    value = known[number if number < len(known) else 0]
    if info.is_size:
        return Sizes(value.tolist()) if value.ndim else int(value)
    return asarray(value)


def _computed(function: Callable[[Sequence[Any]], Any], infos: Sequence[Info], number: int) -> list[Any]:
    with suspended():
        result = function([_known_value(info, number) for info in infos])
        leaves, structure = pytree.flatten(result)
        return [structure, *map(_info, leaves)]


def _traced(function: Callable[[Sequence[Any]], Any], infos: Sequence[Info], number: int, size: int) -> list[Any]:
    trace = Trace("a graph")
    with tracing(trace):
        values = []
        for k, info in enumerate(infos):
            if info.known is not None:
                values.append(_known_value(info, number))
                continue
            shape = tuple([size if extent is None else extent for extent in info.shape or ()])
            if info.sized is not None and size in _SIZES:
                shape = info.sized[number]
            values.append(trace.argument(TensorType(shape, np.dtype(info.dtype or "float32")), f"x{k}"))
        leaves, structure = pytree.flatten(function(values))
        return [structure, *map(_info, leaves)]


def _info(leaf: object) -> Any:
    """What one run says of a result; other values than tensors stay."""
    if isinstance(leaf, Sizes) or type(leaf) in (int, Dim):
        value = np.asarray(leaf, dtype=np.int32)
        return Info(value.shape, int32, (value,), is_size=True)
    if isinstance(leaf, Variable):
        leaf = leaf.value()
    if not isinstance(leaf, Value):
        return leaf
    known = leaf._known() if leaf.size <= _FEW else None
    known = leaf.numpy() if known is None and type(leaf) is Value and leaf.size <= _FEW else known
    return Info(tuple([int(x) for x in leaf.shape]), leaf.dtype, None if known is None else (np.array(known),))


def _joined(results: Sequence[Sequence[Any]]) -> Any:
    """What all runs agree on."""
    structure = results[0][0]
    leaves = []
    for members in zip(*(result[1:] for result in results)):
        first = members[0]
        if isinstance(first, Info) and len(members) == 2:
            second = members[1]
            if len(first.shape or ()) != len(second.shape or ()):
                first = Info(None, first.dtype)
            else:
                pairs = zip(first.shape or (), second.shape or ())
                known = None
                if first.known is not None and second.known is not None:
                    same = np.array_equal(first.known[0], second.known[0])
                    known = first.known if same else (first.known[0], second.known[0])
                shape = tuple([a if a == b else None for a, b in pairs])
                sized = None if None not in shape else (_extents_of(first), _extents_of(second))
                first = Info(shape, first.dtype, known, first.is_size, sized)
        leaves.append(first)
    return pytree.unflatten(structure, leaves)


def _extents_of(info: Info) -> tuple[int, ...]:
    return tuple([extent or 0 for extent in info.shape or ()])


def is_constant(tensor: Tensor) -> bool:
    """Whether the value is known while the graph is built, whatever is fed."""
    return tensor.info.known is not None and len(tensor.info.known) == 1


def constant_value(tensor: TensorLike) -> np.ndarray | None:
    """The value of a tensor that is known while the graph is built, else None."""
    if not is_symbolic(tensor):
        return np.asarray(tensor)
    element = as_graph_tensor(tensor)
    return element.info.known[0] if element.info.known is not None and is_constant(element) else None


__all__ = ["Operation", "Recorded", "Sizes", "as_graph_tensor", "constant_value", "inferred", "is_symbolic"]
