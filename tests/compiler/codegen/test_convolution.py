"""Convolutions and pooling: bits against the stated order, values against float64 loops, derivatives, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler import target as targets
from hybridflow.compiler.batching import batch
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, evaluation_order
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target
from tests.gpu.test_cuda_emission import assert_assembles
from tests.support.bits import same_bits
from tests.support.cutting_host import check_cuts

RNG = np.random.default_rng(4)

Shape = tuple[int, ...]

# x[n, *s, g, c], f[*k, c, g, o]: several blocks of k, of places, of columns; tiles of several lines, runs in the middle
# of which a block ends; channels that are cut into slices; groups across which vectors go.
CASES: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "blocks of k": ((2, 9, 9, 1, 70), (3, 3, 70, 1, 40), {"low": (1, 1), "high": (1, 1)}),
    "many lines in a tile": ((3, 4, 3, 1, 9), (3, 3, 9, 1, 21), {"low": (1, 1), "high": (1, 1)}),
    "long lines": ((3, 600, 1, 3), (5, 3, 1, 7), {"low": (4,)}),
    "many channels": ((2, 7, 7, 1, 520), (3, 3, 520, 1, 20), {"low": (1, 1), "high": (1, 1)}),
    "groups": ((2, 6, 7, 3, 5), (3, 3, 5, 3, 17), {"high": (1, 2), "step": (2, 1)}),
    "small groups": ((1, 6, 6, 9, 4), (3, 3, 4, 9, 4), {"low": (1, 1), "high": (1, 1)}),
    "many groups": ((1, 5, 6, 23, 2), (2, 3, 2, 23, 5), {"low": (1, 1), "high": (0, 1)}),
    "pairs of columns": ((2, 7, 5, 40, 1), (3, 2, 1, 40, 2), {"low": (1, 1), "step": (1, 2)}),
    "groups to one": ((1, 6, 4, 37, 3), (2, 2, 3, 37, 1), {"high": (1, 1)}),
    "depthwise": ((2, 11, 30, 70, 1), (3, 3, 1, 70, 1), {"low": (1, 1), "high": (1, 1), "step": (2, 2)}),
    "depthwise, long windows": ((1, 9, 21, 33, 1), (2, 8, 1, 33, 1), {"low": (1, 3), "high": (0, 4)}),
    "depthwise, longer than registers": ((1, 5, 25, 32, 1), (1, 19, 1, 32, 1), {"low": (0, 9), "high": (0, 9)}),
    "depthwise volumes": (
        (1, 4, 5, 12, 64, 1),
        (2, 3, 3, 1, 64, 1),
        {"step": (1, 2, 3), "low": (1, 1, 1), "high": (0, 1, 2)},
    ),
    "spread": ((2, 5, 6, 1, 5), (3, 3, 5, 1, 3), {"interior": (1, 2), "low": (2, -1), "high": (-2, 3)}),
    "spread wider": ((2, 40, 4, 2, 130), (5, 1, 130, 2, 6), {"interior": (1, 3), "low": (3, 2), "high": (3, 4)}),
    "spread, in steps": ((1, 6, 5, 1, 4), (3, 4, 4, 1, 18), {"interior": (2, 3), "step": (2, 6), "low": (2, 5)}),
    "spread, dilated": (
        (2, 5, 6, 7, 1),
        (2, 3, 1, 7, 1),
        {"interior": (1, 2), "dilation": (2, 2), "low": (1, 4), "high": (2, 4)},
    ),
    "spread volumes": (
        (2, 3, 4, 3, 1, 3),
        (3, 2, 2, 3, 1, 5),
        {"interior": (1, 2, 1), "step": (1, 1, 4), "low": (2, 1, 0), "high": (1, 1, 2)},
    ),
    "dilated": ((2, 9, 11, 1, 3), (3, 3, 3, 1, 18), {"dilation": (2, 3), "low": (2, 3), "high": (2, 3)}),
    "volumes": ((2, 5, 6, 7, 1, 3), (2, 3, 3, 3, 1, 5), {"low": (1, 1, 1), "high": (1, 1, 1)}),
}


def arrays_for(name: str, dtype: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    x_shape, f_shape, given = CASES[name]
    types = TensorType(x_shape, np.dtype(dtype)), TensorType(f_shape, np.dtype(dtype))
    canon = TABLE["convolve"].canon
    assert canon
    x, f = (RNG.standard_normal(shape).astype(dtype) for shape in (x_shape, f_shape))
    return x, f, canon(types, given)


def one_op(op: str, a: np.ndarray, b: np.ndarray, attrs: dict[str, Any], images: Any = None) -> Graph:
    """The graph of an op of two inputs, for ``images`` images if given."""
    g = GraphBuilder(TABLE, op)
    first = (a, b) if op == "convolve_filter" else (a,)
    shapes = [
        (images, *v.shape[1:]) if images is not None and k < len(first) else v.shape for k, v in enumerate((a, b))
    ]
    inputs = [g.parameter(TensorType(shape, v.dtype)) for shape, v in zip(shapes, (a, b))]
    return g.finish([g.emit(TABLE[op], *inputs, **attrs)])


def programs(name: str, dtype: Any) -> list[tuple[str, np.ndarray, np.ndarray, dict[str, Any], np.ndarray]]:
    """(op, operands, attributes, result in the stated order) of a case, and of its derivative by the filter."""
    x, f, attrs = arrays_for(name, dtype)
    y = evaluation_order.ordered_convolution(x, f, attrs)
    size = f.shape[:-3]
    by_filter = evaluation_order.ordered_convolution_filter(x, y, size, attrs)
    return [("convolve", x, f, attrs, y), ("convolve_filter", x, y, {"size": size, **attrs}, by_filter)]


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_the_stated_order(name: str) -> None:
    for op, a, b, attrs, expected in programs(name, np.float32):
        graph = one_op(op, a, b, attrs)
        for other in ("sse2", "avx2", "avx512"):
            if host_target.can_run(targets.NAMED[other]):
                (got,) = cpu.load(compile_graph(graph, targets.NAMED[other])).run([a, b])
                assert same_bits(got, expected)
        check_cuts(compile_graph(graph, host_target.target()), [a, b])
        assert_assembles(ptx.assemble(compile_graph(graph, targets.CUDA_SM90)))
        compile_graph(graph, targets.AARCH64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8"])
def test_other_dtypes(dtype: str) -> None:
    for name in ("groups", "depthwise", "many lines in a tile"):
        for op, a, b, attrs, expected in programs(name, hf.asarray([], dtype=dtype).dtype):
            (got,) = cpu.load(compile_graph(one_op(op, a, b, attrs), host_target.target())).run([a, b])
            assert same_bits(got, expected)


@pytest.mark.parametrize("name", ["blocks of k", "depthwise", "long lines"])
def test_any_number_of_images(name: str) -> None:
    for op, a, b, attrs, expected in programs(name, np.float32):
        (got,) = cpu.load(compile_graph(one_op(op, a, b, attrs, Dim("n")), host_target.target())).run([a, b])
        assert same_bits(got, expected)


def test_producers_and_what_follows_are_part_of_the_kernel() -> None:
    x, f, attrs = arrays_for("many lines in a tile", np.float32)
    g = GraphBuilder(TABLE)
    images, filters = (g.parameter(TensorType(v.shape, v.dtype)) for v in (x.astype(np.float16), f))
    bias = g.parameter(TensorType((21,), f.dtype))
    out = g.reshape(g.convolve(g.convert(images, dtype=f.dtype), filters, **attrs), shape=(3, 4, 3, 21))
    out = g.maximum(g.add(out, g.broadcast(bias, shape=(3, 4, 3, 21), axes=(3,))), g.full(0, out.type))
    program = compile_graph(g.finish([out]), host_target.target())
    assert len(program.kernels) == 1
    b = RNG.standard_normal(21).astype(np.float32)
    (got,) = cpu.load(program).run([x.astype(np.float16), f, b])
    seen = evaluation_order.ordered_convolution(x.astype(np.float16).astype(np.float32), f, attrs)
    assert same_bits(got, np.maximum(seen.reshape(3, 4, 3, 21) + b, 0))


def test_zeros_between_neighbours_are_no_factors() -> None:
    x, f, attrs = arrays_for("spread, in steps", np.float32)
    f[0, 1, 2], f[2, 2, 1] = np.inf, np.nan
    expected = evaluation_order.ordered_convolution(x, f, attrs)
    assert np.isfinite(expected).any()
    graph = one_op("convolve", x, f, attrs)
    check_cuts(compile_graph(graph, host_target.target()), [x, f])
    (got,) = cpu.load(compile_graph(graph, host_target.target())).run([x, f])
    assert np.array_equal(got, expected, equal_nan=True)


def test_zeros_between_neighbours_of_images_of_any_size() -> None:
    x, f, attrs = arrays_for("spread", np.float32)
    sizes = (Dim("h"), Dim("w"))
    low = (Dim("h") - 3, 5 - Dim("w"))  # what they are above: 2 and -1
    g = GraphBuilder(TABLE)
    images = g.parameter(TensorType((2, *sizes, 1, 5), x.dtype))
    graph = g.finish([g.convolve(images, g.parameter(TensorType(f.shape, f.dtype)), **{**attrs, "low": low})])
    (got,) = cpu.load(compile_graph(graph, host_target.target())).run([x, f])
    assert same_bits(got, evaluation_order.ordered_convolution(x, f, attrs))


# ---- public functions


def convolved(x: np.ndarray, f: np.ndarray, step: int, low: Shape, high: Shape, dilation: int, groups: int) -> Any:
    """x[n, *s, c] with f[*k, c / groups, o], by loops over the elements of a window, in float64."""
    axes = f.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), *zip(low, high), (0, 0)])
    f = f.astype(np.float64)
    size = f.shape[:axes]
    places = [(n - (k - 1) * dilation - 1) // step + 1 for n, k in zip(x.shape[1:], size)]
    out = np.zeros((len(x), *places, f.shape[-1]))
    own, outputs = f.shape[-2], f.shape[-1] // groups
    for tap in itertools.product(*map(range, size)):
        at = tuple(slice(t * dilation, t * dilation + (p - 1) * step + 1, step) for t, p in zip(tap, places))
        for g in range(groups):
            seen = x[(slice(None), *at, slice(g * own, (g + 1) * own))]
            out[..., g * outputs : (g + 1) * outputs] += seen @ f[tap][:, g * outputs : (g + 1) * outputs]
    return out


def close(got: Any, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    got = np.asarray(got).astype(np.float64)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max(initial=0) <= tolerance * max(1.0, np.abs(expected).max(initial=0))


FUNCTIONS: list[tuple[Callable[..., Any], int]] = [(hf.nn.conv1d, 1), (hf.nn.conv2d, 2), (hf.nn.conv3d, 3)]


@pytest.mark.parametrize(("function", "axes"), FUNCTIONS)
@pytest.mark.parametrize(("step", "dilation", "groups"), [(1, 1, 1), (2, 1, 2), (1, 2, 1)])
def test_values(function: Callable[..., Any], axes: int, step: int, dilation: int, groups: int) -> None:
    extents = (7, 6, 5)[:axes]
    x, f = RNG.standard_normal((2, *extents, 4)), RNG.standard_normal((*(3, 2, 2)[:axes], 4 // groups, 6))
    x, f = x.astype(np.float32), f.astype(np.float32)
    pads = [(1, 2), (0, 1), (2, 0)][:axes]
    for padding in ("VALID", "SAME", pads):
        low, high = (0,) * axes, (0,) * axes
        if padding == "SAME":
            spans = [(k - 1) * dilation + 1 for k in f.shape[:axes]]
            totals = [max((-(-n // step) - 1) * step + span - n, 0) for n, span in zip(extents, spans)]
            low, high = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
        elif padding != "VALID":
            low, high = zip(*pads)
        expected = convolved(x, f, step, low, high, dilation, groups)
        close(function(x, f, step, padding, None, dilation), expected)
        forwards = (0, axes + 1, *range(1, axes + 1))
        last = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[axes]
        close(function(x.transpose(forwards), f, step, padding, last, dilation), expected.transpose(forwards))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_transposed_convolutions_are_derivatives(padding: str, step: int) -> None:
    """<conv(x), y> = <x, transposed(y)> for any x and y."""
    x, f = RNG.standard_normal((2, 9, 8, 3)), RNG.standard_normal((3, 2, 3, 5))
    seen = hf.nn.conv2d(x, f, step, padding)
    y = RNG.standard_normal(seen.shape)
    back = hf.nn.conv2d_transpose(y, f, x.shape, step, padding)
    assert np.isclose((seen.numpy() * y).sum(), (back.numpy() * x).sum())
    same = hf.nn.conv2d_transpose(np.moveaxis(y, 3, 1), f, x.shape[1:3], step, padding, "NCHW")
    assert np.array_equal(np.moveaxis(same.numpy(), 1, 3), back.numpy())
    with pytest.raises(hf.errors.ShapeError, match="output_shape"):
        hf.nn.conv2d_transpose(y, f, (2, 20, 8, 3), step, padding)


def test_depthwise_and_separable() -> None:
    x, f, p = RNG.standard_normal((2, 6, 5, 3)), RNG.standard_normal((3, 3, 3, 2)), RNG.standard_normal((1, 1, 6, 4))
    expected = np.concatenate(
        [convolved(x[..., c : c + 1], f[:, :, c : c + 1], 1, (1, 1), (1, 1), 1, 1) for c in range(3)], axis=-1
    )
    close(hf.nn.depthwise_conv2d(x, f, (1, 1, 1, 1), "SAME"), expected)
    close(hf.nn.separable_conv2d(x, f, p, 1, "SAME"), expected @ p[0, 0])


def numeric(function: Callable[..., Any], arrays: list[np.ndarray], k: int) -> np.ndarray:
    """The derivative of a sum of float64 results, by differences."""
    found = np.zeros_like(arrays[k])
    for at in np.ndindex(found.shape):
        sides = []
        for h in (1e-5, -1e-5):
            moved = [a.copy() for a in arrays]
            moved[k][at] += h
            sides.append(float(function(*moved)))
        found[at] = (sides[0] - sides[1]) / 2e-5
    return found


GRADIENTS: dict[str, tuple[Callable[..., Any], Shape, Shape]] = {
    "strided": (lambda x, f: hf.nn.conv2d(x, f, 2, "SAME"), (2, 5, 4, 2), (3, 2, 2, 3)),
    "dilated groups": (lambda x, f: hf.nn.conv1d(x, f, 1, "VALID", None, 2), (2, 6, 4), (2, 2, 4)),
    "depthwise": (lambda x, f: hf.nn.depthwise_conv2d(x, f, 1, "SAME"), (1, 4, 3, 2), (3, 3, 2, 2)),
    "transposed": (lambda x, f: hf.nn.conv2d_transpose(x, f, (5, 4), 2, "SAME"), (1, 3, 2, 2), (3, 3, 3, 2)),
    "volumes": (lambda x, f: hf.nn.conv3d(x, f, 2, "SAME"), (1, 3, 3, 2, 1), (2, 2, 2, 1, 2)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_and_second_derivatives(name: str) -> None:
    function, *shapes = GRADIENTS[name]
    x, f = (RNG.standard_normal(shape) for shape in shapes)
    weights = RNG.standard_normal(function(x, f).shape)

    def loss(x: Any, f: Any) -> Any:
        return hf.sum(hf.sin(function(x, f)) * weights)

    def gradients(x: Any, f: Any) -> Any:
        x, f = hf.asarray(x), hf.asarray(f)
        with hf.GradientTape() as tape:
            tape.watch([x, f])
            y = loss(x, f)
        return tape.gradient(y, [x, f])

    def of_gradients(x: Any, f: Any) -> Any:
        dx, df = gradients(x, f)
        return hf.sum(hf.sin(dx)) + hf.sum(hf.cos(df))

    compiled = hf.function(gradients)(hf.constant(x), hf.constant(f))
    for k, (got, again) in enumerate(zip(gradients(x, f), compiled)):
        close(got, numeric(loss, [x, f], k), 1e-6)
        assert same_bits(got.numpy(), again.numpy())
    tensors = [hf.constant(x), hf.constant(f)]
    with hf.GradientTape() as tape:
        tape.watch(tensors)
        y = of_gradients(*tensors)
    for k, got in enumerate(tape.gradient(y, tensors)):
        close(got, numeric(of_gradients, [x, f], k), 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_derivatives_of_narrow_floats(dtype: str) -> None:
    x, f = (hf.astype(RNG.standard_normal(s), dtype) for s in ((2, 6, 6, 3), (3, 3, 3, 4)))
    found = []
    for wide in (None, "float64"):
        tensors = [x, f] if wide is None else [hf.astype(v, wide) for v in (x, f)]
        with hf.GradientTape() as tape:
            tape.watch(tensors)
            y = hf.sum(hf.nn.conv2d(*tensors, 1, "SAME") * 0.5)
        found.append(tape.gradient(y, tensors))
    for got, exact in zip(*found):
        assert got.dtype == x.dtype
        close(got, exact.numpy(), 2e-2)


@pytest.mark.parametrize("batched", [(0,), (1,), (0, 1)])
def test_many_examples_at_once(batched: tuple[int, ...]) -> None:
    for op, a, b, attrs, _ in programs("groups", np.float32):
        graph, operands = one_op(op, a, b, attrs), [a, b]
        many = [np.stack([v, -2 * v, v + 1]) if k in batched else v for k, v in enumerate(operands)]
        (got,) = cpu.load(compile_graph(batch(graph, batched, 3), host_target.target())).run(many)
        single = cpu.load(compile_graph(graph, host_target.target()))
        for number in range(3):
            (expected,) = single.run([v[number] if k in batched else v for k, v in enumerate(many)])
            assert same_bits(got[number], expected)


def pooled(x: np.ndarray, size: int, step: int, low: int, high: int) -> tuple[Any, Any, Any]:
    """Maxima, what a cotangent of ones gives to their first elements, and means, of [n, h, w, c]."""
    n, h, w, c = x.shape
    places = [(e + low + high - size) // step + 1 for e in (h, w)]
    largest, mean, back = np.zeros((n, *places, c)), np.zeros((n, *places, c)), np.zeros(x.shape)
    for i, a, b, k in np.ndindex(largest.shape):
        rows = range(max(a * step - low, 0), min(a * step - low + size, h))
        columns = range(max(b * step - low, 0), min(b * step - low + size, w))
        inside = [(x[i, r, q, k], r, q) for r in rows for q in columns]
        largest[i, a, b, k], r, q = max(inside, key=lambda item: item[0])  # the first of equal ones
        back[i, r, q, k] += 1
        mean[i, a, b, k] = np.mean([v for v, _, _ in inside])
    return largest, back, mean


@pytest.mark.parametrize(("size", "step", "pads"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), (1, 2, 0), (2, 3, 0)])
def test_pooling(size: int, step: int, pads: int) -> None:
    x = np.round(RNG.standard_normal((2, 7, 8, 3)) * 1.5)  # with many equal elements
    largest, back, mean = pooled(x, size, step, pads, pads)
    padding = [(pads, pads)] * 2
    t = hf.constant(x)
    with hf.GradientTape() as tape:
        tape.watch(t)
        got = hf.nn.max_pool2d(t, size, step, padding)
        total = hf.sum(got)
    assert np.array_equal(got.numpy(), largest)
    assert np.array_equal(tape.gradient(total, t).numpy(), back)
    close(hf.nn.avg_pool2d(t, size, step, padding), mean)
    first = hf.nn.max_pool2d(np.moveaxis(x, 3, 1), size, (1, 1, step, step), padding, "NCHW")
    assert np.array_equal(np.moveaxis(first.numpy(), 1, 3), largest)
    with hf.GradientTape() as tape:
        tape.watch(t)
        total = hf.sum(hf.nn.avg_pool2d(t, size, step, padding) * 2)
    expected = numeric(lambda x: hf.sum(hf.nn.avg_pool2d(x, size, step, padding) * 2), [x[:1, :4, :4, :1]], 0)
    small = hf.constant(x[:1, :4, :4, :1])
    with hf.GradientTape() as tape:
        tape.watch(small)
        total = hf.sum(hf.nn.avg_pool2d(small, size, step, padding) * 2)
    close(tape.gradient(total, small), expected, 1e-6)


def test_pooling_pads_with_nothing() -> None:
    x = -hf.ones((1, 3, 3, 1))
    assert (hf.nn.max_pool(x, 2, 1, "SAME").numpy() == -1).all()
    assert (hf.nn.avg_pool(x, 2, 1, "SAME").numpy() == -1).all()
    assert (hf.nn.max_pool(hf.full((1, 3, 1), -5, dtype="int8"), 2, 2, "SAME").numpy() == -5).all()


def test_any_sizes_of_images() -> None:
    filters = hf.constant(RNG.standard_normal((3, 3, 2, 4)).astype(np.float32))

    @hf.function(input_signature=[hf.TensorSpec((None, None, None, 2), "float32")])
    def compiled(x: Any) -> Any:
        return hf.nn.max_pool2d(hf.nn.relu(hf.nn.conv2d(x, filters, 2, "SAME")), 2, 2, "VALID")

    for shape in ((2, 8, 9, 2), (3, 15, 12, 2), (1, 7, 30, 2)):
        x = RNG.standard_normal(shape).astype(np.float32)
        expected = hf.nn.max_pool2d(hf.nn.relu(hf.nn.conv2d(x, filters, 2, "SAME")), 2, 2, "VALID")
        assert same_bits(compiled(hf.constant(x)).numpy(), expected.numpy())


def test_no_images_and_no_channels() -> None:
    assert hf.nn.conv2d(hf.zeros((0, 4, 4, 2)), hf.zeros((3, 3, 2, 5))).shape == (0, 2, 2, 5)
    assert hf.nn.conv2d(hf.zeros((2, 0, 4, 2)), hf.zeros((3, 3, 2, 5)), 1, "SAME").shape == (2, 0, 4, 5)
    assert (hf.nn.conv1d(hf.zeros((2, 4, 0)), hf.zeros((2, 0, 3))).numpy() == np.zeros((2, 3, 3))).all()
    x = hf.zeros((0, 4, 4, 2))
    with hf.GradientTape() as tape:
        f = hf.ones((3, 3, 2, 5))
        tape.watch(f)
        y = hf.sum(hf.nn.conv2d(x, f))
    assert (tape.gradient(y, f).numpy() == 0).all()


IMAGES = np.zeros((1, 5, 5, 4), np.float32)
FILTERS = np.zeros((3, 3, 4, 2), np.float32)

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hf.nn.conv2d(IMAGES[0], FILTERS), hf.errors.ShapeError, "4 axes"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS[0]), hf.errors.ShapeError, "filters are"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS[:, :, :3]), hf.errors.ShapeError, "4 channels"),
    (lambda: hf.nn.conv2d(IMAGES, np.zeros((6, 3, 4, 2))), hf.errors.ShapeError, "takes 6 elements along axis 0"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1, "VALID", None, 3), hf.errors.ShapeError, "takes 7 elements"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS[:0]), hf.errors.ShapeError, "at least one element"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 0), hf.errors.ArgumentError, "strides is 0"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, (2, 1, 1, 1)), hf.errors.ArgumentError, "examples and the channels"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1, "FULL"), hf.errors.ArgumentError, "padding is 'FULL'"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1, [(0, -1), (0, 0)]), hf.errors.ArgumentError, "numbers >= 0"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1, 3), hf.errors.ArgumentTypeError, "padding is 3"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1, "SAME", "NWHC"), hf.errors.ArgumentError, "data_format"),
    (lambda: hf.nn.conv2d(IMAGES, FILTERS, 1.5), hf.errors.ArgumentTypeError, "strides is 1.5"),
    (lambda: hf.nn.conv2d(IMAGES > 0, FILTERS > 0), hf.errors.DTypeError, "bool"),
    (lambda: hf.nn.convolution(IMAGES, FILTERS, groups=2), hf.errors.ArgumentError, "1 groups"),
    (lambda: hf.nn.depthwise_conv2d(IMAGES, FILTERS[:, :, :2]), hf.errors.ShapeError, "4 channels"),
    (lambda: hf.nn.max_pool2d(IMAGES, 6, 1, "VALID"), hf.errors.ShapeError, "takes 6 elements"),
    (lambda: hf.nn.max_pool2d(IMAGES, 2, 1, [(2, 0), (0, 0)]), hf.errors.ArgumentError, "less than a window"),
    (lambda: hf.nn.avg_pool(IMAGES[0, 0], 2, 1, "VALID"), hf.errors.ShapeError, "three to five"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, error, text = ERRORS[number]
    with pytest.raises(error, match=text):
        call()
