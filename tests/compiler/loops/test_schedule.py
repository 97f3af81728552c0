"""Schedules: what may run in parallel, in which form; and that the bits do not depend on where units are cut."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import hybridflow.errors as hf_errors
from hybridflow.compiler.codegen import module_builder
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType, static_size
from hybridflow.compiler.loops import schedule as schedules
from hybridflow.compiler.ops import TABLE, evaluation_order
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AVX2, AVX512, CUDA_SM90, SSE2
from hybridflow.runtime.cuda import executable as cuda
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.cutting_host import check_cuts, cutting, outcome

FOLDS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


def values(shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) < 1e-5
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-9, 9, shape).astype(dtype)
    return (1 + rng.normal(size=shape) / 1024).astype(dtype)


def folded(op, array, axes):
    b = GraphBuilder(TABLE, op)
    x = b.parameter(TensorType(array.shape, array.dtype))
    return b.finish([getattr(b, op)(x, axes=axes)])


def most_units(graph) -> list[int]:
    """For each phase, into how many pieces it may be cut."""
    with mock.patch.object(module_builder, "Phase", wraps=module_builder.Phase) as phase:
        compiled(graph)
    return [-(-static_size(units) // grain) for _, units, grain in (call.args for call in phase.call_args_list)]


def compiled(graph, target=None):
    return compile_graph(graph, target or host_target.target())


@pytest.fixture
def small_pieces(monkeypatch):
    """Everything is cut as if it were large."""
    monkeypatch.setattr(schedules, "SPLIT_REDUCTION", 1)
    monkeypatch.setattr(schedules, "SMALL", 1)


# ---- units


def test_large_kernels_have_many_units():
    b = GraphBuilder(TABLE, "many")
    flat = b.parameter(TensorType((1 << 24,), dt.float32))
    square = b.parameter(TensorType((1000, 1000), dt.float32))
    wide, bias = b.parameter(TensorType((4, 1 << 20), dt.float32)), b.parameter(TensorType((1 << 20,), dt.float32))
    cases = [
        b.sum(flat, axes=(0,)),
        b.argmax(flat, axes=(0,)),
        b.sum(square, axes=(0,)),
        b.sum(square, axes=(0, 1)),
        b.add(wide, b.broadcast(bias, shape=wide.shape, axes=(1,))),
        b.sum(wide, axes=(1,)),
        b.max(wide, axes=(0,)),
    ]
    for result in cases:
        assert max(most_units(b.finish([result]))) >= 64


def test_little_work_has_one_phase():
    for shape, axes in (((1000,), (0,)), ((300, 200), (0,)), ((4000, 4000), (1,))):
        b = GraphBuilder(TABLE, "little")
        x = b.parameter(TensorType(shape, dt.float32))
        assert len(most_units(b.finish([b.sum(x, axes=axes)]))) == 1


def test_as_few_loops_as_needed_are_cut():
    b = GraphBuilder(TABLE, "loops")
    x, c = b.parameter(TensorType((100, 100, 20), dt.float32)), b.parameter(TensorType((100, 20), dt.float32))
    graph = b.finish([b.add(x, b.broadcast(c, shape=x.shape, axes=(0, 2)))])
    (kernel,) = compiled(graph).kernels
    assert kernel.schedule.startswith("map, 100 units; ")


# ---- bits


@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((300_000,), (0,)),
        ((3, 9000), (1,)),
        ((2, 7, 300), (0, 2)),
        ((5, 3, 5000), (0, 2)),
        ((300, 20), (0,)),
        ((9000, 3), (0,)),
        ((3, 200, 37), (1,)),
        ((70, 3, 80, 5), (0, 2)),
    ],
)
@pytest.mark.usefixtures("small_pieces")
def test_folds_of_pieces(op, shape, axes):
    if op.startswith("arg") and len(axes) not in (1, len(shape)):
        pytest.skip("one axis, or all")
    dtypes = (np.bool_,) if op in ("any", "all") else (np.float32, np.float64, np.int8, dt.bfloat16)
    for dtype in dtypes:
        array = values(shape, dtype)
        graph = folded(op, array, axes)
        program = compiled(graph)
        assert any(words in program.kernels[0].schedule for words in ("in pieces", "runs at once"))
        (result,) = check_cuts(program, [array])[1:]
        if dtype in (np.float32, np.float64) and op in ("sum", "prod"):
            twin = evaluation_order.ordered_sum if op == "sum" else evaluation_order.ordered_prod
            assert same_bits(result, twin(array, axes))


@pytest.mark.parametrize("shape", [(2 * evaluation_order.SUPERCHUNK + 5000,), (3, evaluation_order.SUPERCHUNK + 1)])
@pytest.mark.parametrize("enough", [2, 64])
def test_superchunks_and_chunks(monkeypatch, shape, enough):
    monkeypatch.setattr(schedules, "ENOUGH", enough)
    array, axes = values(shape), (len(shape) - 1,)
    program = compiled(folded("sum", array, axes))
    if len(shape) == 1 or enough > 3:
        assert (
            f"pieces of {evaluation_order.SUPERCHUNK if enough == 2 else evaluation_order.CHUNK}"
            in program.kernels[0].schedule
        )
    assert same_bits(check_cuts(program, [array])[1], evaluation_order.ordered_sum(array, axes))


@pytest.mark.parametrize("terms", [65, 64 * 64, 64 * 64 + 1, 3 * 64 * 64 + 70])
@pytest.mark.parametrize("enough", [1, 64])
@pytest.mark.usefixtures("small_pieces")
def test_groups_of_terms(monkeypatch, terms, enough):
    """Which terms are one piece depends on the target's vectors, the bits do not."""
    monkeypatch.setattr(schedules, "ENOUGH", enough)
    array = values((terms, 21))
    graph = folded("sum", array, (0,))
    if enough > 1:
        assert "columns in pieces" in compiled(graph, AVX2).kernels[0].schedule
    for target in (host_target.target(), AVX2, SSE2):
        assert same_bits(check_cuts(compiled(graph, target), [array])[1], evaluation_order.ordered_sum(array, (0,)))


@pytest.mark.parametrize("op", ["sum", "max", "argmin"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        (("n",), (0,)),
        ((3, "n"), (1,)),
        (("n", 7), (0,)),
        ((2, "n", 9), (1,)),
        (("n", "m", 5), (0, 1)),
        (("n", "m"), (0, 1)),
    ],
)
def test_folds_of_symbolic_extents(op, shape, axes):
    if op.startswith("arg") and len(axes) not in (1, len(shape)):
        pytest.skip("one axis, or all")
    b = GraphBuilder(TABLE, "symbolic")
    x = b.parameter(TensorType(tuple(Dim(n) if isinstance(n, str) else n for n in shape), dt.float32))
    result = getattr(b, op)(x, axes=axes)
    program = compiled(b.finish([result, b.exp(b.convert(result, dtype=dt.float32))]))
    assert "in pieces" in program.kernels[0].schedule
    for n, m in ((2, 2), (63, 3), (64, 64), (4096, 2), (4097, 5), (30_000, 2)):
        array = values(tuple({"n": n, "m": m}.get(k, k) for k in shape))
        found = check_cuts(program, [array])[1]
        assert same_bits(found, outcome(compiled(folded(op, array, axes)), [array])[1])


@pytest.mark.parametrize(("shape", "axes"), [((1000, 1000), (0,)), ((1 << 20,), (0,)), ((4, 1 << 18), (1,))])
def test_a_single_thread_folds_without_pieces(shape, axes):
    array = values(shape)
    program = compiled(folded("sum", array, axes))
    assert "in pieces" in program.kernels[0].schedule
    assert ", none for one thread" in program.kernels[0].schedule
    assert program.text.count("\ndefine ") == 2, "the fold, and the entry"
    assert program.kernels[0].symbol not in program.text, "the first phase is for hosts"
    assert f"@{program.kernels[0].symbol}(" in program.sharing
    assert same_bits(check_cuts(program, [array])[1], evaluation_order.ordered_sum(array, axes))


@pytest.mark.parametrize("target", [host_target.target(), AVX2, SSE2])
def test_a_fold_in_a_branch_has_pieces_as_well(target):
    branches = []
    for op in ("sum", "max"):
        inner = GraphBuilder(TABLE, op)
        x = inner.parameter(TensorType((1000, 1000), dt.float32))
        branches.append(inner.finish([getattr(inner, op)(x, axes=(0,))]))
    b = GraphBuilder(TABLE, "outer")
    predicate, x = b.parameter(TensorType((), dt.bool_)), b.parameter(TensorType((1000, 1000), dt.float32))
    program = compiled(b.finish(b.results(b.cond(predicate, x, branches=tuple(branches)))), target)
    assert any("in pieces" in kernel.schedule for kernel in program.kernels)
    array = values((1000, 1000))
    assert same_bits(check_cuts(program, [np.array(True), array])[1], evaluation_order.ordered_sum(array, (0,)))
    assert same_bits(check_cuts(program, [np.array(False), array])[1], array.max(0))


def statistics(b, x, axes):
    """Two folds, one of which needs the other's result, what follows from both, and results of every element."""
    kept = tuple(k for k in range(len(x.shape)) if k not in axes)
    total = b.sum(x, axes=axes)
    most = b.max(x, axes=axes)
    spread = b.broadcast(b.tanh(total), shape=x.shape, axes=kept)
    apart = b.subtract(x, spread)
    other = b.sum(b.multiply(apart, apart), axes=axes)
    return [
        b.add(total, most),
        b.exp(other),
        b.add(x, b.broadcast(b.sqrt(b.abs(other)), shape=x.shape, axes=kept)),
        apart,
    ]


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((9000,), (0,)), ((3, 4, 5000), (0, 2)), ((300, 21), (0,)), ((2, 200, 37), (1,)), ((70, 120, 5), (0, 1))],
)
@pytest.mark.usefixtures("small_pieces")
def test_several_folds_and_what_follows(monkeypatch, shape, axes):
    b = GraphBuilder(TABLE, "statistics")
    array = values(shape)
    graph = b.finish(statistics(b, b.parameter(TensorType(shape, dt.float32)), axes))
    split = [check_cuts(compiled(graph, target), [array]) for target in (host_target.target(), AVX2, SSE2)]
    assert (
        "in pieces" in compiled(graph, AVX2).kernels[0].schedule
    )  # wider vectors may fold the columns of one shape whole
    monkeypatch.setattr(schedules, "SPLIT_REDUCTION", 1 << 40)
    whole = outcome(compiled(graph), [array])
    for found in split:
        assert all(same_bits(a, b) for a, b in zip(found[1:], whole[1:], strict=True))


@pytest.mark.parametrize("shape", [(4, 5000), (3, 7, 1000), (2, 3, 4, 5, 129), (1 << 13,)])
@pytest.mark.usefixtures("small_pieces")
def test_maps_are_cut_within_their_rows(shape):
    b = GraphBuilder(TABLE, "map")
    x, c = b.parameter(TensorType(shape, dt.float32)), b.parameter(TensorType(shape[-1:], dt.float32))
    graph = b.finish([b.multiply(x, b.broadcast(c, shape=shape, axes=(len(shape) - 1,))), b.exp(x)])
    check_cuts(compiled(graph), [values(shape), values(shape[-1:], seed=1)], range(5))


@pytest.mark.parametrize("shape", [(70, 90), (5, 33, 40), (2, 3, 64, 48)])
@pytest.mark.usefixtures("small_pieces")
def test_turned_maps_are_cut(shape):
    b = GraphBuilder(TABLE, "turned")
    x = b.parameter(TensorType(shape, dt.float32))
    perm = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    graph = b.finish([b.exp(b.transpose(x, perm=perm))])
    assert "turned" in compiled(graph).kernels[0].schedule
    check_cuts(compiled(graph), [values(shape)], range(5))


@pytest.mark.parametrize("extents", [(2, 3), (17, 5000), (300, 2), (64, 64)])
def test_symbolic_maps_are_cut_within_their_rows(extents):
    b = GraphBuilder(TABLE, "symbolic")
    n, m = Dim("n"), Dim("m")
    x, c = b.parameter(TensorType((n, m), dt.float32)), b.parameter(TensorType((m,), dt.float32))
    graph = b.finish(
        [b.multiply(x, b.broadcast(c, shape=x.shape, axes=(1,))), b.sum(x, axes=(1,)), b.max(x, axes=(0,))]
    )
    check_cuts(compiled(graph), [values(extents), values(extents[1:], seed=1)], range(4))


def test_the_grain_of_an_update_in_place_keeps_pieces_apart():
    # A piece that ran past its end would apply the update twice.
    from hybridflow.compiler.ir.graph import Role

    b = GraphBuilder(TABLE, "update")
    x = b.parameter(TensorType((4096,), dt.float32), role=Role.STATE)
    graph = b.finish([], {0: b.add(x, x)})
    program = compiled(graph)
    assert program.inputs[0].in_place
    array = values((4096,))
    with cutting(3) as cutter:
        found = outcome(program, [array])
    assert cutter.loops and same_bits(found[1], array + array)


# ---- GPU


@pytest.mark.usefixtures("emulated", "small_pieces")
@pytest.mark.parametrize(
    ("shape", "axes"), [((9000,), (0,)), ((3, 5000), (1,)), ((300, 5), (0,)), ((7, 3, 800), (0, 2))]
)
def test_pieces_on_a_gpu(monkeypatch, shape, axes):
    monkeypatch.setattr(schedules, "SPLIT_ON_GPU", 1)
    monkeypatch.setattr(schedules, "SPLIT_AMONG_GROUPS", 1)
    b = GraphBuilder(TABLE, "gpu")
    array = values(shape)
    graph = b.finish(statistics(b, b.parameter(TensorType(shape, dt.float32)), axes))
    program = compile_graph(graph, CUDA_SM90)
    assert len(program.launches) > len(program.kernels)
    found = [out.get() for out in cuda.load(program, 0).run([Array(np.array(array), 0)])]
    want = outcome(compiled(graph), [array])[1:]
    assert all(same_bits(a, b) for a, b in zip(found, want, strict=True))


def test_a_full_sum_on_a_gpu_has_many_threads():
    program = compile_graph(folded("sum", values((1 << 20,)), (0,)), CUDA_SM90)
    assert [launch.units for launch in program.launches] == [256, 1]


# ---- joins


JOINS = {
    "rows": lambda b, x, y: b.concat(x, y, axis=0),
    "columns": lambda b, x, y: b.concat(x, y, x, axis=1),
    "computed": lambda b, x, y: b.concat(b.exp(x), b.transpose(b.transpose(y, perm=(1, 0)), perm=(1, 0)), axis=0),
    "two dtypes": lambda b, x, y: b.concat(b.convert(x, dtype=dt.float64), b.convert(y, dtype=dt.float64), axis=1),
    "pad": lambda b, x, y: b.pad(x, low=(1, 2), high=(3, 0), value=7),
    "spread": lambda b, x, y: b.pad(y, low=(0, 1), high=(2, 1), interior=(1, 2), value=-1),
}


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (100, 3), (3, 100), (65, 70), (700, 2)])
@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("small", [1, 4096])
def test_joins_are_cut_anywhere(monkeypatch, name, shape, small):
    monkeypatch.setattr(schedules, "SMALL", small)
    b = GraphBuilder(TABLE, name)
    x, y = (b.parameter(TensorType(shape, dt.float32)) for _ in range(2))
    graph = b.finish([JOINS[name](b, x, y)])
    arrays = [values(shape), values(shape, seed=1)]
    for target in (host_target.target(), AVX2, SSE2):
        check_cuts(compiled(graph, target), arrays, range(4))


@pytest.mark.parametrize("extents", [(2, 2), (100, 3), (3, 100)])
@pytest.mark.parametrize("axis", [0, 1])
def test_joins_of_symbolic_extents(extents, axis):
    b = GraphBuilder(TABLE, "symbolic")
    x, y = (b.parameter(TensorType((Dim("n"), Dim("m")), dt.float32)) for _ in range(2))
    try:
        graph = b.finish([b.concat(x, y, axis=axis)])
    except hf_errors.ShapeError:
        pytest.skip("not supported of symbolic extents")
    arrays = [values(extents), values(extents, seed=1)]
    (found,) = check_cuts(compiled(graph), arrays, range(4))[1:]
    assert same_bits(found, np.concatenate(arrays, axis))


def test_large_joins_have_many_units():
    b = GraphBuilder(TABLE, "joins")
    x, m = b.parameter(TensorType((1 << 20,), dt.float32)), b.parameter(TensorType((1000, 1000), dt.float32))
    for result in (b.concat(x, x, axis=0), b.concat(m, m, axis=1), b.pad(m, low=(1, 1), high=(1, 1), value=0)):
        assert most_units(b.finish([result]))[0] >= 64


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", JOINS)
def test_joins_on_a_gpu(name):
    b = GraphBuilder(TABLE, name)
    x, y = (b.parameter(TensorType((7, 5), dt.float32)) for _ in range(2))
    graph = b.finish([JOINS[name](b, x, y)])
    arrays = [values((7, 5)), values((7, 5), seed=1)]
    program = compile_graph(graph, CUDA_SM90)
    assert program.launches[0].units > 1
    (found,) = cuda.load(program, 0).run([Array(np.array(a), 0) for a in arrays])
    assert same_bits(found.get(), outcome(compiled(graph), arrays)[1])


# ---- short loops


def norms(b, x):
    """Of rows: the norm, the rows over it, the largest and where it is."""
    last = len(x.shape) - 1
    norm = b.sqrt(b.sum(b.multiply(x, x), axes=(last,)))
    unit = b.divide(x, b.broadcast(norm, shape=x.shape, axes=tuple(range(last))))
    most = b.argmax(unit, axes=(last,))
    return [norm, unit, most, b.any(b.greater(x, b.exp(x)), axes=(last,))]


def softmax(b, x):
    last = len(x.shape) - 1
    kept = tuple(range(last))
    apart = b.exp(b.subtract(x, b.broadcast(b.max(x, axes=(last,)), shape=x.shape, axes=kept)))
    return [b.divide(apart, b.broadcast(b.sum(apart, axes=(last,)), shape=x.shape, axes=kept))]


def colours(b, x):
    """Pixels as planes, planes as pixels, and a bias for each colour."""
    last = len(x.shape) - 1
    perm = (last, *range(last))
    bias = b.slice(b.reshape(x, shape=(int(np.prod(x.shape)),)), start=(0,), stop=(x.shape[-1],), step=(1,))
    planes = b.exp(b.transpose(x, perm=perm))
    back = b.multiply(
        b.transpose(planes, perm=(*range(1, last + 1), 0)), b.broadcast(bias, shape=x.shape, axes=(last,))
    )
    return [planes, back, b.greater(b.add(x, b.broadcast(bias, shape=x.shape, axes=(last,))), x)]


def lit(b, x):
    """Pixels and their mirror image, with a number of each colour, one of each pixel, and where some are larger."""
    *rows, count = x.shape
    axes = tuple(range(len(rows)))
    first = b.slice(x, start=(0,) * len(x.shape), stop=(*rows, 1), step=(1,) * len(x.shape))
    first = b.broadcast(b.reshape(first, shape=tuple(rows)), shape=x.shape, axes=axes)
    bias = b.slice(b.reshape(x, shape=(int(np.prod(x.shape)),)), start=(0,), stop=(count,), step=(1,))
    bias = b.broadcast(bias, shape=x.shape, axes=(len(rows),))
    mirrored = b.reverse(x, axes=(len(rows) - 1,))
    above = b.greater(mirrored, bias)
    chosen = b.where(b.greater(first, bias), x, b.multiply(mirrored, first))
    return [chosen, above, b.where(above, b.reverse(x, axes=(len(rows),)), b.convert(above, dtype=x.dtype))]


SHORT = {"norms": norms, "softmax": softmax, "colours": colours, "lit": lit}


ACROSS = [(2, 2), (40, 3), (5, 33, 3), (100, 7), (64, 10), (17, 16), (130, 4), (3, 20, 6), (70, 15)]


def across():
    """Every program of every shape in float32; in each other dtype every program, and every shape of some program.  The
    program of pixels has bytes of every shape."""
    for k, shape in enumerate(ACROSS):
        for j, name in enumerate(SHORT):
            yield pytest.param(name, shape, np.float32, id=f"f32-{name}-{shape}")
            for step, dtype in ((0, np.dtype(np.float64)), (2, np.dtype(dt.bfloat16))):
                if (k + j + step) % len(SHORT) == 0:
                    yield pytest.param(name, shape, dtype.type, id=f"{dtype.name}-{name}-{shape}")
        yield pytest.param("lit", shape, np.uint8, id=f"u8-lit-{shape}")


@pytest.mark.parametrize(("name", "shape", "dtype"), list(across()))
def test_short_loops_across_longer_ones(monkeypatch, name, shape, dtype):
    monkeypatch.setattr(schedules, "SMALL", 1)
    b = GraphBuilder(TABLE, name)
    graph = b.finish(SHORT[name](b, b.parameter(TensorType(shape, np.dtype(dtype)))))
    scale = 100 if dtype is np.uint8 else 0.5
    array = (values(shape, np.float64) * scale).astype(np.int64 if dtype is np.uint8 else dtype).astype(dtype)
    found = []
    for target in (host_target.target(), AVX512, AVX2, SSE2):
        if target is AVX512 and not host_target.target().masked:
            continue
        found.append(check_cuts(compiled(graph, target), [array], (0, 1)))
    monkeypatch.setattr(schedules, "SHORT_LOOP", 1)
    plain = compiled(graph)
    assert all("across" not in k.schedule for k in plain.kernels)
    for one in found:
        assert all(same_bits(a, b) for a, b in zip(one[1:], outcome(plain, [array])[1:], strict=True))


def test_colours_that_meet_the_same_arithmetic_stay_as_they_lie():
    def of(make, shape, dtype):
        b = GraphBuilder(TABLE, "flat")
        return compiled(b.finish(make(b, b.parameter(TensorType(shape, np.dtype(dtype))))), AVX2).kernels[0].schedule

    assert "8 lanes; 3 turns" in (found := of(lit, (50, 90, 3), np.float32)) and "as they lie" in found
    assert "32 lanes; 3 turns" in (found := of(lit, (50, 90, 3), np.uint8)) and "as they lie" in found
    assert "across" not in of(lit, (50, 90, 8), np.float32)  # whole vectors
    assert "as they lie" not in of(colours, (50, 90, 3), np.float32)  # planes are no neighbours


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 8, 9, 11, 13, 14, 15, 16])
def test_the_order_of_short_folds(terms):
    array = np.random.default_rng(terms).normal(size=(50, terms)).astype(np.float32)
    program = compiled(folded("sum", array, (1,)), AVX2)
    assert ("across" in program.kernels[0].schedule) == (terms not in (1, 8, 16))
    assert same_bits(outcome(program, [array])[1], evaluation_order.ordered_sum(array, (1,)))
    pixels = np.random.default_rng(terms).normal(size=(300, 70, terms)).astype(np.float32)
    program = compiled(folded("sum", pixels, (1,)), AVX2)
    assert ("1 reads turned" in program.kernels[0].schedule) == (terms in (2, 3))
    assert same_bits(check_cuts(program, [pixels])[1], evaluation_order.ordered_sum(pixels, (1,)))


@pytest.mark.parametrize("rows", [257, 511, 512, 513, 8191, 8193, 20_000])
@pytest.mark.parametrize("columns", [2, 3, 5, 8, 10, 15])
def test_a_few_columns_are_folded_in_runs(rows, columns):
    array = np.random.default_rng(columns).normal(size=(rows, columns)).astype(np.float32)
    array[rows // 2, 0], array[rows // 3, 1], array[-1, -1] = np.nan, np.inf, 1e30
    for op, wanted in (
        ("sum", evaluation_order.ordered_sum(array, (0,))),
        ("max", array.max(0)),
        ("argmax", array.argmax(0)),
    ):
        program = compiled(folded(op, array, (0,)), AVX2)
        assert "runs at once" in program.kernels[0].schedule
        found = check_cuts(program, [array])[1]
        assert np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f")
        if op == "sum":
            assert same_bits(found, wanted)


@pytest.mark.parametrize(("shape", "kernels"), [((5000, 3), 2), ((5000, 15), 2), ((5000, 8), 1), ((200, 3), 1)])
def test_what_a_few_columns_are_used_for_is_a_kernel_of_its_own(shape, kernels):
    b = GraphBuilder(TABLE, "centred")
    x, scale = b.parameter(TensorType(shape, dt.float32)), b.parameter(TensorType(shape[1:], dt.float32))
    scaled = b.multiply(x, b.broadcast(scale, shape=shape, axes=(1,)))
    program = compiled(b.finish([b.subtract(x, b.broadcast(b.sum(scaled, axes=(0,)), shape=shape, axes=(1,)))]), AVX2)
    assert len(program.kernels) == kernels
    arrays = [values(shape), values(shape[1:], seed=1)]
    assert same_bits(
        check_cuts(program, arrays)[1], arrays[0] - evaluation_order.ordered_sum(arrays[0] * arrays[1], (0,))
    )


@pytest.mark.parametrize(("points", "others"), [(260, 64), (257, 130), (300, 15)])
def test_forces_on_points(monkeypatch, points, others):
    """Sums of what is weighted by a value of each pair, over the first or the second of the pair."""
    monkeypatch.setattr(schedules, "ENOUGH", 4)
    b = GraphBuilder(TABLE, "forces")
    x, y = (b.parameter(TensorType((n, 3), dt.float32)) for n in (points, others))
    pairs = (points, others, 3)
    apart = b.subtract(b.broadcast(x, shape=pairs, axes=(0, 2)), b.broadcast(y, shape=pairs, axes=(1, 2)))
    weight = b.parameter(TensorType((points, others), dt.float32))
    pull = b.multiply(apart, b.broadcast(weight, shape=pairs, axes=(0, 1)))
    arrays = [values((points, 3)), values((others, 3), seed=1), values((points, others), seed=2)]
    for axis in (0, 1):
        graph = b.finish([b.tanh(b.sum(pull, axes=(axis,)))])
        program = compiled(graph, AVX2)
        if axis:
            assert "1 reads turned" in program.kernels[0].schedule
        found = check_cuts(program, arrays)[1]
        pulls = (arrays[0][:, None] - arrays[1][None]) * arrays[2][..., None]
        one = GraphBuilder(TABLE, "tanh")
        tanh = compiled(one.finish([one.tanh(one.parameter(TensorType(found.shape, dt.float32)))]))
        assert same_bits(found, outcome(tanh, [evaluation_order.ordered_sum(pulls, (axis,))])[1])


@pytest.mark.parametrize("n", [2, 7, 64, 1000])
def test_short_loops_beside_symbolic_ones(n):
    b = GraphBuilder(TABLE, "symbolic")
    x = b.parameter(TensorType((Dim("n"), 3), dt.float32))
    program = compiled(b.finish(norms(b, x)))
    assert "across" in program.kernels[0].schedule
    array = values((n, 3))
    b = GraphBuilder(TABLE, "static")
    static = compiled(b.finish(norms(b, b.parameter(TensorType((n, 3), dt.float32)))))
    found = check_cuts(program, [array])[1:]
    assert all(same_bits(a, b) for a, b in zip(found, outcome(static, [array])[1:], strict=True))


@pytest.mark.parametrize("shape", [(7,), (33, 65), (40, 3), (5, 1000), (300, 37), (3, 50, 70), (10_000,)])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16], ids=str)
def test_narrow_elements_are_folded_by_whole_vectors(shape, dtype):
    array = (np.random.default_rng(len(shape)).integers(-100, 100, shape) // (99 if dtype is np.bool_ else 1)).astype(
        dtype
    )
    for axis in range(len(shape)):
        for op in ("any", "all") if dtype is np.bool_ else ("max", "min", "argmax"):
            wanted = getattr(np, op)(array, axis=axis)
            for target in (host_target.target(), AVX2, SSE2):
                program = compiled(folded(op, array, (axis,)), target)
                found = check_cuts(program, [array])[1]
                assert np.array_equal(found, wanted) and found.shape == wanted.shape
    array = np.zeros((100, 100), dtype)
    op = "any" if dtype is np.bool_ else "max"
    schedule = compiled(folded(op, array, (1,)), AVX2).kernels[0].schedule
    assert f"{32 // np.dtype(dtype).itemsize} lanes" in schedule
