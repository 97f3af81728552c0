"""What a node costs: the instructions that its op's own rule emits for one element.  No list of costs to keep."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import Kind, OpDef
from hybridflow.compiler.ops.fold_rules import FoldRules
from hybridflow.compiler.target import AVX512

GATHERED = 8  # an element found through an index: a check and a load that cannot be a vector's
PADDED = 4  # a choice between an element and a fill
SEARCHED = 128  # some turns of a loop with a load each
DRAWN = 64  # ten rounds of Philox
SAMPLED = 512  # tries, each with some of them and some logarithms
# What takes an element at a time counts for as many instructions as vectors do meanwhile.
ONE_BY_ONE = {Kind.GATHER: 128, Kind.SCAN: 64, Kind.SCATTER: 32, Kind.SORT: 4096, Kind.TRANSFORM: 64}


def work_of_element(node: Node) -> int:
    """Instructions for one element, among many in vectors."""
    return ONE_BY_ONE.get(node.op.kind) or instructions(node)


def instructions(node: Node) -> int:
    """Instructions to make one element from the elements of the inputs."""
    kind = node.op.kind
    if kind is Kind.ELEMENTWISE or kind is Kind.REDUCE:
        attrs = node.attrs if kind is Kind.ELEMENTWISE else FoldRules(node.op, (), node.attrs).attrs
        return _measure(node.op, tuple([n.type.dtype for n in node.inputs]), _freeze(attrs) if attrs else ())
    if kind is Kind.GATHER:
        return GATHERED
    if kind is Kind.SEARCH or kind is Kind.SPARSE:
        return SEARCHED
    if kind is Kind.SEGMENT:
        return PADDED
    if kind is Kind.CREATE and node.inputs:
        return DRAWN if len(node.inputs) == 1 else SAMPLED
    return 0


def _freeze(attrs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(attrs.items()))


@functools.lru_cache(maxsize=4096)
def _measure(op: OpDef, dtypes: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...]) -> int:
    e = Emitter(AVX512)
    e.on_check, e.status = (lambda check: 1), "%status"
    values = [Val(f"%x{k}", dt.compute_dtype(d), 1) for k, d in enumerate(dtypes)]
    if op.lift and op.combine:
        state = op.lift(e, *values, Val("%i", dt.int64, 1), **dict(attrs))
        (op.later or op.combine)(e, state, state, **dict(attrs))
    elif op.scalar:
        op.scalar(e, *values, **dict(attrs))
    return sum(not line.endswith(":") and " br " not in line for line in e.lines)
