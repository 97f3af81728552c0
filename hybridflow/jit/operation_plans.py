"""Plans of public functions (see ``eager.operations``): the body traced and compiled for all sizes of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import LEAST
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import Kind
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.errors import HybridflowError
from hybridflow.jit.binding import Binder
from hybridflow.jit.concrete import trace_signature
from hybridflow.jit.keys import Key, LeafKey, TensorKey, leaf_key
from hybridflow.jit.native_calls import native_call_for
from hybridflow.runtime.calls.native_call import NativeCall


def plan(body: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> NativeCall | None:
    """What answers calls like this one, which gave ``result``, without the body; None where that has to be asked."""
    binder = Binder(body, body.__name__)
    leaves, structure = pytree.flatten(binder.bind(tuple(args), kwargs))
    if _is_view(result, leaves):
        return None
    try:
        key = Key(structure, tuple([_open_key(leaf, binder.name) for leaf in leaves]))
        concrete, _ = trace_signature(
            body, binder, key, leaves, fastmath=False, may_create_variables=False, observing=_unobserved
        )
    except HybridflowError:  # what needs values, such as the number of elements that are not zero
        return None
    if _may_be_view(concrete.graph, leaves):
        return None
    return native_call_for(concrete, (), binder, args, kwargs, repeats=True)


def _open_key(leaf: Any, name: str) -> LeafKey:
    """The key of an argument, of a tensor one for all extents that are not 0 or 1."""
    if type(leaf) not in (Tensor, np.ndarray):
        return leaf_key(leaf, "", name)
    return TensorKey(tuple([n if n < LEAST else None for n in leaf.shape]), leaf.dtype)


def _unobserved(trace: Any, values: Any) -> AbstractContextManager[None]:
    """The bodies of operations read nothing from outside that could change but variables, which traces see."""
    return nullcontext()


def _is_view(result: Any, leaves: Sequence[Any]) -> bool:
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
