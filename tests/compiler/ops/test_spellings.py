"""Extents that are spelled in two ways are one to the rules of ops, also where no trace is asked; others are not."""

from __future__ import annotations

from typing import Any

import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.results import TOKEN, TupleType, types_agree
from hybridflow.compiler.ir.types import Dim, Extent, TensorType, broadcast_shapes, same_shape
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import ShapeError

N: Any = Dim("n")
ONE, OTHER = N // 2, N - (N + 1) // 2


def f32(*shape: Extent) -> TensorType:
    return TensorType(shape, dt.float32)


def i64(*shape: Extent) -> TensorType:
    return TensorType(shape, dt.int64)


def graph(*inputs: TensorType) -> Graph:
    b = GraphBuilder(TABLE, "body")
    return b.finish([b.parameter(type, f"x{k}") for k, type in enumerate(inputs)])


STATE = TensorType((ONE, 2), dt.uint64)
RULES: dict[str, Any] = {  # of the second extent: name, types, attributes
    "product": lambda m: ("matmul", (f32(3, ONE), f32(m, 3)), {}),
    "turned product": lambda m: ("matmul", (f32(ONE, 3), f32(m, 3)), {"transpose_a": True}),
    "products": lambda m: ("matmul", (f32(ONE, 3, 4), f32(m, 4, 3)), {}),
    "sum": lambda m: ("add", (f32(ONE, 3), f32(m, 3)), {}),
    "concat before": lambda m: ("concat", (f32(ONE, 3), f32(m, 5)), {"axis": 1}),
    "concat behind": lambda m: ("concat", (f32(3, ONE), f32(5, m)), {"axis": 0}),
    "broadcast": lambda m: ("broadcast", (f32(ONE),), {"shape": (2, m), "axes": (1,)}),
    "convolve": lambda m: ("convolve", (f32(1, 9, ONE, 4), f32(3, 4, m, 6)), {}),
    "square": lambda m: ("det", (f32(ONE, m),), {}),
    "solve": lambda m: ("solve", (f32(ONE, ONE), f32(m, 2)), {}),
    "solve many": lambda m: ("solve", (f32(ONE, 3, 3), f32(m, 3, 2)), {}),
    "lstsq": lambda m: ("lstsq", (f32(ONE, 2), f32(m, 1), f32(1, 1)), {"rank": 2}),
    "search": lambda m: ("search", (f32(ONE, 4), f32(m, 5)), {"batch": 1}),
    "sparse columns": lambda m: ("csr_matmul", (f32(5, 2), f32(ONE), i64(m), i64(4), i64(4)), {}),
    "sparse rows": lambda m: ("csr_matmul", (f32(5, 2), f32(7), i64(7), i64(ONE), i64(m)), {}),
    "along": lambda m: ("take_along_axis", (f32(ONE, 3), i64(m, 2)), {"axis": 1}),
    "scatter": lambda m: ("scatter_add", (f32(9, 3), i64(ONE), f32(m, 3)), {"axis": 0}),
    "recurrence": lambda m: ("linear_recurrence", (f32(ONE, 3), f32(m, 3)), {"axis": 1}),
    "drawn": lambda m: ("random_gamma", (STATE, f32(m, 3)), {}),
    "call": lambda m: ("call", (f32(ONE),), {"body": graph(f32(m))}),
    "cond": lambda m: (
        "cond",
        (TensorType((), dt.bool_), f32(ONE)),
        {"branches": (graph(f32(ONE)), graph(f32(m)))},
    ),
    "scan": lambda m: (
        "scan",
        (f32(3), f32(ONE, 3)),
        {"body": graph(f32(3), f32(3)), "carries": 1, "stacked": 1, "length": m},
    ),
    "custom": lambda m: ("custom", (f32(ONE), f32(m)), {"derivative": graph(f32(m)), "made": 0, "given": 1}),
}


@pytest.mark.parametrize("name", RULES)
def test_two_spellings_are_one_extent(name: str) -> None:
    def result(extent: Extent) -> Any:
        op, types, attrs = RULES[name](extent)
        attrs = TABLE[op].canon(types, attrs) if TABLE[op].canon is not None else attrs
        return TABLE[op].result(types, attrs)

    assert types_agree(result(ONE), result(OTHER))
    with pytest.raises(ShapeError):
        result(OTHER + 1)


def test_shapes_and_types_in_two_spellings() -> None:
    assert same_shape((ONE, 3), (OTHER, 3)) and not same_shape((ONE, 3), (OTHER + 1, 3))
    assert not same_shape((ONE,), (ONE, 3)) and not same_shape((N,), (Dim("m"),)) and same_shape((), ())
    assert broadcast_shapes((ONE, 3), (OTHER, 1)) == (ONE, 3)
    assert types_agree(f32(ONE), f32(OTHER)) and not types_agree(f32(ONE), i64(OTHER))
    assert types_agree(TupleType((f32(ONE),)), TupleType((f32(OTHER),)))
    assert not types_agree(TupleType((f32(ONE),)), f32(OTHER))
    assert not types_agree(TupleType((f32(2),)), TupleType((f32(2), f32(2))))
    assert types_agree(TOKEN, TOKEN) and not types_agree(TOKEN, TensorType((0,), dt.uint8))
