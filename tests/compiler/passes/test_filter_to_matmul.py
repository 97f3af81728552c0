"""Convolutions of one channel as products: the bits of convolutions, and where there is no such product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.passes.matmul_rewrites import LEAST_PLACES, filters_to_matmul
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.flags import SKIP
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build

TARGETS = [name for name in ("sse2", "avx2", "avx512") if host_target.can_run(target.NAMED[name])]


def _names(graph: Any) -> list[str]:
    return [node.op.name for node in graph.nodes]


def _operands(dtype: type, count: int, length: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    x, f = rng.standard_normal((count, length, 1, 1)), rng.standard_normal((size, 1, 1, 1))
    x.flat[3], x.flat[-2], f.flat[0] = np.inf, np.nan, -0.0
    return [x.astype(dtype), f.astype(dtype)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("count", "length", "size", "low", "high", "dilation"),
    [(1, 100, 7, 0, 0, 1), (3, 70, 7, 2, 5, 3), (2, 400, 300, 299, 299, 1), (1, 40, 1, 0, 0, 1), (2, 90, 20, 0, 4, 2)],
)
def test_bits(
    dtype: type, count: int, length: int, size: int, low: int, high: int, dilation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = _operands(dtype, count, length, size)

    def program(b: Any, x: Any, f: Any) -> Any:
        seen = b.convolve(b.abs(x), f, low=(low,), high=(high,), dilation=(dilation,))
        return b.convolve(seen, f, low=(size,), high=(size,))  # of what a product has made

    graph = build(program, arrays)
    assert _names(filters_to_matmul(graph)).count("matmul") == 2
    for name in TARGETS:
        (found,) = cpu.load(compile_graph(graph, target.NAMED[name])).run(arrays)
        with monkeypatch.context() as patch:
            patch.setattr(SKIP, "value", "filters")
            (expected,) = cpu.load(compile_graph(graph, target.NAMED[name])).run(arrays)
        same_bits(found, expected)


@pytest.mark.parametrize(
    ("x", "f", "attrs"),
    [
        ((1, 100, 1, 1), (7, 1, 1, 1), {"step": (2,)}),
        ((1, 100, 1, 1), (7, 1, 1, 1), {"interior": (1,)}),
        ((1, 100, 1, 1), (7, 1, 1, 1), {"low": (-1,)}),
        ((1, 100, 1, 2), (7, 2, 1, 1), {}),
        ((1, 100, 2, 1), (7, 1, 2, 1), {}),
        ((1, 100, 1, 1), (7, 1, 1, 3), {}),
        ((1, LEAST_PLACES + 5, 1, 1), (7, 1, 1, 1), {}),
        ((1, 40, 40, 1, 1), (3, 3, 1, 1, 1), {}),
    ],
)
def test_stays(x: tuple[int, ...], f: tuple[int, ...], attrs: dict[str, Any]) -> None:
    graph = build(lambda b, x, f: b.convolve(x, f, **attrs), [np.zeros(x, np.float32), np.zeros(f, np.float32)])
    assert _names(filters_to_matmul(graph)) == _names(graph)
