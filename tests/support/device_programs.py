"""What every device must compute to the same bits: samples of each op, and functions that take several kernels."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, OpDef


def typical_dtypes(op: OpDef) -> list[Any]:
    """Some of an op's dtypes, of each width."""
    return list(dict.fromkeys([op.dtypes[0], op.dtypes[-1], *(d for d in (dt.float16, dt.float32) if d in op.dtypes)]))


def largest_sample(op: OpDef, dtype: Any) -> tuple[list[np.ndarray], dict[str, Any]]:
    rng = np.random.default_rng(zlib.crc32(f"{op.name}{dtype}".encode()))
    arrays, attrs = max(op.samples(rng, dtype), key=lambda sample: sum(a.size for a in sample[0]))
    return [np.asarray(a) for a in arrays], attrs


def graph_of(op: OpDef, arrays: list[np.ndarray], attrs: dict[str, Any]) -> Graph:
    """The op alone."""
    b = GraphBuilder(TABLE, op.name)
    out = b.emit(op, *(b.parameter(TensorType(a.shape, a.dtype)) for a in arrays), **attrs)
    return b.finish(b.results(out) if isinstance(out.type, TupleType) else [out])


def traced(name: str) -> Graph:
    """The graph of one of the functions below."""
    function, arguments = PROGRAMS[name]
    return hf.function(function).get_concrete_function(*arguments).graph


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {}


def _program(*arguments: np.ndarray) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return add


_rng = np.random.default_rng(11)


def _floats(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape).astype(np.float32)


@_program(_floats(7, 83))
def softmax(x):
    return hf.nn.softmax(x, axis=-1)


@_program(_floats(3, 5, 33), _floats(33), _floats(33))
def layer_norm(x, scale, shift):
    mean = hf.mean(x, axis=-1, keepdims=True)
    variance = hf.mean(hf.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * hf.rsqrt(variance + 1e-5) * scale + shift


@_program(_floats(130, 9), _floats(9))
def column_statistics(x, w):
    centred = x - hf.mean(x, axis=0)
    return hf.sum(centred * w, axis=0), hf.max(centred, axis=0), centred


@_program(_floats(5000))
def long_sum(x):
    return hf.sum(x), hf.argmax(x), hf.sum(hf.exp(x) / hf.sum(hf.exp(x)))


@_program(_floats(4, 3), _floats(2, 3), _floats(4, 2))
def joined(x, y, z):
    rows = hf.concat([hf.tanh(x), y], axis=0)
    return hf.pad(rows, ((1, 0), (0, 2)), constant_values=0.5), hf.concat([x, z], axis=1).T


@_program(_floats(6, 40), _rng.integers(-6, 6, (4, 2)))
def indexed(x, indices):
    order = hf.argsort(x, axis=-1)
    return order, hf.take(x, indices, axis=0), hf.take_along_axis(x, order[:, ::-1], axis=1)


@_program(_floats(70, 3), _rng.integers(0, 5, 70))
def scattered(updates, indices):
    return hf.scatter_add(hf.zeros((5, 3)), indices, updates), hf.cumulative_sum(updates, axis=0)


@_program(_floats(9000), _floats(8200, 3))
def scanned(line, lines):
    return hf.cumulative_sum(line), hf.cumulative_sum(lines, axis=0)


@_program(_floats(70_000))
def ranked(line):
    return hf.argsort(line, descending=True)


@_program(_floats(40, 300), _floats(300), _floats(40))
def matrix_times_vector(matrix, along, across):
    return hf.tanh(matrix @ along + across), matrix.T @ across, across @ matrix


@_program(_floats(19, 300), _floats(300, 23), _floats(23))
def matmul_with_epilogue(x, w, b):
    return hf.nn.relu(x @ w + b)


@_program(_floats(2, 5, 7), _floats(2, 11, 7))
def batched_product(q, k):
    return hf.nn.softmax(q @ k.mT, axis=-1) @ k


@_program(_floats(16, 12), _floats(12, 8), _floats(8), _floats(8, 3), _rng.integers(0, 3, 16))
def training_step(x, w1, b1, w2, labels):
    with hf.GradientTape() as tape:
        for w in (w1, b1, w2):
            tape.watch(w)
        logits = hf.tanh(x @ w1 + b1) @ w2
        loss = hf.mean(hf.logsumexp(logits, axis=-1) - hf.sum(logits * hf.one_hot(labels, 3), axis=-1))
    gradients = tape.gradient(loss, (w1, b1, w2))
    return loss, *(w - 0.1 * g for w, g in zip((w1, b1, w2), gradients))
