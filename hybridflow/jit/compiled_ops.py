"""Plans of public functions (see ``eager.public_op``): the body traced and compiled for all sizes of its tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.shapes import permute_dims
from hybridflow.autodiff.tape import passes
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.compiler.ir.extents import LEAST
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.core import pytree
from hybridflow.core.call_binding import Binder, split
from hybridflow.core.promotion import array_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.eager.taped_calls import values_among
from hybridflow.errors import HybridflowError
from hybridflow.jit.cache_key import Key, LeafKey, TensorKey, leaf_key
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.native_entry import argument_inputs, native_call_for
from hybridflow.jit.trace_function import RaisedError, trace_signature
from hybridflow.runtime.calls.native_call import NativeCall

if TYPE_CHECKING:
    from hybridflow.tracing.trace import Trace


_TRANSPOSE = TABLE["transpose"]


def compile_call(
    body: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], result: object
) -> NativeCall | None:
    """What answers calls like this one, which gave ``result``, without the body; None where that has to be asked."""
    binder = Binder(body, body.__name__)
    leaves = pytree.flatten(binder.bind(tuple(args), kwargs))[0]
    turned = frozenset(k for k, leaf in enumerate(leaves) if _is_transposed(leaf))
    concrete = _traced(body, binder, args, kwargs, result, turned)
    multiplied = frozenset() if concrete is None else _multiplied(concrete)
    if not turned <= multiplied:  # whoever reads it otherwise is quicker with a copy
        turned &= multiplied
        concrete = _traced(body, binder, args, kwargs, result, turned)
    if concrete is None:
        return None
    of_products = {k: k in turned for k in multiplied}
    call = native_call_for(concrete, None, binder, args, kwargs, repeats=True, turned=of_products)
    return call if isinstance(call, NativeCall) else None


def _is_transposed(leaf: object) -> bool:
    """Whether it is a tensor whose elements lie in the order of its axes reversed, as those of a transpose do."""
    return type(leaf) is Tensor and leaf._array.flags.f_contiguous and not leaf._array.flags.c_contiguous


def _multiplied(concrete: ConcreteFunction) -> frozenset[int]:
    """The leaves that nothing but products reads, which take a transpose as it lies."""
    graph, users = concrete.graph, concrete.graph.users()

    def is_factor(node: Node) -> bool:
        return all(user.op.kind is Kind.CONTRACT or (user.op is _TRANSPOSE and is_factor(user)) for user in users[node])

    inputs = zip(concrete.tensor_leaves, argument_inputs(concrete))
    nodes = {leaf: graph.inputs[k] for leaf, k in inputs}
    return frozenset(k for k, node in nodes.items() if node not in graph.results and users[node] and is_factor(node))


def compile_taped_call(
    body: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], result: object
) -> tuple[NativeCall, Graph] | None:
    """As ``plan``, with the graph of a body that a tape may record as a whole: one float of tensors alone, on which
    derivatives depend by ops of the table."""
    binder = Binder(body, body.__name__)
    concrete = _traced(body, binder, args, kwargs, result)
    if concrete is None or type(result) is not Tensor or not is_float(result.dtype):
        return None
    graph = concrete.graph
    in_order = values_among(pytree.flatten(binder.bind(tuple(args), kwargs))[0])
    tensors = values_among((*args, *kwargs.values()))
    if not len(graph.inputs) == len(in_order) == len(tensors) or not all(map(operator.is_, in_order, tensors)):
        return None  # a variable, a value from outside, arguments in another order
    if len(graph.outputs) != 1 or graph.outputs[0].is_parameter or not _is_smooth(graph):
        return None
    if concrete.staged.trace.custom_vjps or concrete.aliases.depends_on_identity:
        return None
    call = native_call_for(concrete, None, binder, args, kwargs, repeats=True)
    return (call, graph) if isinstance(call, NativeCall) else None


def _traced(
    body: Callable[..., Any],
    binder: Binder,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    result: object,
    turned: Container[int] = (),
) -> ConcreteFunction | None:
    """The body traced for arguments like these, those among the leaves that are ``turned`` in the order in which they
    lie."""
    leaves, structure = pytree.flatten(binder.bind(tuple(args), kwargs))
    if _is_view(result, leaves):
        return None
    lying = _exchanged(leaves, turned)

    def as_they_lie(*positional: object, **named: object) -> Any:
        leaves, structure = pytree.flatten(binder.bind(positional, named))
        values = pytree.unflatten(structure, _exchanged(leaves, turned))
        args, kwargs = split(binder.kinds(), values)
        return body(*args, **kwargs)

    try:
        key = Key(structure, tuple([_open_key(leaf, binder.name) for leaf in lying]))
        concrete, _ = trace_signature(
            as_they_lie if turned else body,
            binder,
            key,
            lying,
            fastmath=False,
            may_create_variables=False,
            observing=_unobserved,
        )
    except (HybridflowError, RaisedError):  # what needs values, such as the number of elements that are not zero
        return None
    return None if _may_be_view(concrete.graph, leaves) else concrete


def _exchanged(leaves: Sequence[Any], turned: Container[int]) -> list[Any]:
    """The leaves, the ``turned`` ones with their axes in reverse."""
    return [permute_dims(x, tuple(range(x.ndim))[::-1]) if k in turned else x for k, x in enumerate(leaves)]


def _is_smooth(graph: Graph) -> bool:
    """Whether derivatives pass, by some path, from the result to each float input that it depends on."""
    depends, passed = set(graph.outputs), set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in depends:
            if isinstance(node.type, TupleType):
                return False
            depends.update(node.inputs)
            if node in passed and passes(node.op, node.dtype):
                passed.update(x for x in node.inputs if is_float(x.dtype))
    return all(node in passed for node in graph.inputs if node in depends and is_float(node.dtype))


def _open_key(leaf: Any, name: str) -> LeafKey:
    """The key of an argument, of a tensor one for all extents that are not 0 or 1."""
    if type(leaf) not in (Tensor, np.ndarray):
        return leaf_key(leaf, "", name)
    dtype = leaf.dtype if type(leaf) is Tensor else array_dtype(leaf, name)  # in native byte order
    return TensorKey(tuple([n if n < LEAST else None for n in leaf.shape]), dtype)


def _unobserved(trace: Trace, values: object) -> AbstractContextManager[None]:
    """The bodies of operations read nothing from outside that could change but variables, which traces see."""
    return nullcontext()


def _is_view(result: object, leaves: Sequence[Any]) -> bool:
    """Whether a result lies in the memory of an argument that it is not: a program would copy it."""
    arguments, results = ([x for x in xs if type(x) is Tensor] for xs in (leaves, pytree.flatten(result)[0]))
    return any(x is not y and np.may_share_memory(x._array, y._array) for x in arguments for y in results)


def _may_be_view(graph: Graph, leaves: Sequence[Any]) -> bool:
    """Whether a result that is a copy of strided arguments would be a view of others."""
    if all(x._array.flags.c_contiguous for x in leaves if type(x) is Tensor):
        return False
    return any(_is_seen(node) for node in graph.outputs)


def _is_seen(node: Node) -> bool:
    """Whether a value is a parameter, seen in another way."""
    while not node.is_parameter and node.op.kind is Kind.VIEW:
        node = node.inputs[0]
    return node.is_parameter
