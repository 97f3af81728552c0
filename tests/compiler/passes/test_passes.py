"""Passes keep every bit, found out by trying; and what the driver does around them."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Literal
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.checked_integers import WRAPPING
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.compiler.ops.samples import edges
from hybridflow.compiler.passes.algebraic_simplifier import simplify
from hybridflow.compiler.passes.constant_folding import fold
from hybridflow.compiler.passes.cse import cse
from hybridflow.compiler.passes.dce import dce
from hybridflow.compiler.passes.pass_manager import Pass, Record, fix, run, summary
from hybridflow.compiler.passes.pass_pipeline import DCE, PASSES, SIMPLIFY_PIPELINE, SKIPPABLE
from hybridflow.compiler.passes.pattern_match import Value, find, op
from hybridflow.compiler.passes.rewriter import rewrite
from hybridflow.compiler.pipeline import optimize
from hybridflow.errors import ArgumentError, CompileError, HybridflowError, VerifyError
from tests.support.bits import same_bits

ELEMENTWISE = [op for op in TABLE.values() if op.kind is Kind.ELEMENTWISE]


def assert_same_results(graph: Graph, *arrays: np.ndarray) -> Graph:
    after = run(graph, SIMPLIFY_PIPELINE)
    with np.errstate(all="ignore"):
        expected, found = interpret(graph, arrays)[0], interpret(after, arrays)[0]
    for i, (a, b) in enumerate(zip(expected, found)):
        assert same_bits(a, b), f"output {i}: {a!r} became {b!r}\n{to_text(graph)}{to_text(after)}"
    return after


# ---- algebra, exhaustively: every op on all edge values, with every edge value as a constant

# Their references take series and continued fractions of all pairs: each dtype has another quarter of the constants.
SLOW = {"gammainc", "gammaincc", "gammainc_da"}


@pytest.mark.parametrize("binary", [o for o in ELEMENTWISE if o.arity == 2], ids=lambda o: o.name)
def test_algebra_with_constants_keeps_bits(binary):
    for turn, dtype in enumerate(binary.dtypes):
        x = edges(dtype)
        b = GraphBuilder(TABLE)
        value = b.parameter(TensorType(x.shape, x.dtype))
        values = x[turn % 4 :: 4] if binary.name in SLOW else x
        constants = [b.broadcast(b.literal(c, dtype), shape=x.shape, axes=()) for c in values]
        tries = [(value, c) for c in constants] + [(c, value) for c in constants] + [(value, value)]
        tries += itertools.product(constants, constants)
        nodes = []
        for inputs in tries:
            node = b.emit(binary, *inputs)
            nodes.append(node)
            if node.dtype == dtype and value in inputs:  # f(f(x, c), d)
                nodes.append(b.emit(binary, node, constants[0]))
        if binary.may_raise((value.type, value.type), {}):
            nodes = [n for n in nodes if not raises(b.finish([n]), x)]
        assert_same_results(only_results(b.finish(nodes)), x)


def raises(graph: Graph, *arrays: np.ndarray) -> bool:
    try:
        with np.errstate(all="ignore"):
            interpret(only_results(graph), arrays)
    except HybridflowError:
        return True
    return False


def only_results(graph: Graph) -> Graph:
    """``graph`` without what its results do not need, whether it may raise or not."""
    live = set(graph.results)
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    return graph.rebuild({}, [n for n in graph.nodes if n in live])


@pytest.mark.parametrize("unary", [o for o in ELEMENTWISE if o.arity == 1], ids=lambda o: o.name)
def test_algebra_of_repeated_ops_keeps_bits(unary):
    if unary.name in ("convert", "transfer"):
        pytest.skip("has attributes, and tests of its own")
    for dtype in unary.dtypes:
        x = edges(dtype)
        if unary.name in WRAPPING:
            x = x[x != np.iinfo(dtype).min]  # which is an error
        b = GraphBuilder(TABLE)
        value = b.parameter(TensorType(x.shape, x.dtype))
        once = b.emit(unary, value)
        nodes = [once, b.emit(unary, once)] if once.dtype == dtype else [once]
        nodes += [b.emit(unary, b.literal(c, dtype)) for c in x]
        assert_same_results(b.finish(nodes), x)


@pytest.mark.parametrize("source", dt.REAL, ids=dt.SHORT.get)
def test_chains_of_conversions_keep_bits(source):
    x = np.unique(np.concatenate([np.asarray(edges(d), np.float64).astype(np.float64) for d in dt.REAL]))
    x = np.concatenate([edges(source), TABLE["convert"].reference(x, dtype=source)])
    b = GraphBuilder(TABLE)
    value = b.parameter(TensorType(x.shape, x.dtype))
    nodes = [b.convert(b.convert(value, dtype=through), dtype=to) for through in dt.REAL for to in dt.REAL]
    assert_same_results(b.finish(nodes), x)


def test_embeds_is_what_conversion_says_of_every_value():
    def value(x):
        return TABLE["convert"].reference(x, dtype=dt.float64)

    for a, b in itertools.product(dt.REAL, dt.REAL):
        if a.itemsize <= 2:  # few enough to try all; float64 holds them
            x = (
                np.array([False, True])
                if a == dt.bool_
                else np.arange(2 ** (8 * a.itemsize)).astype(f"u{a.itemsize}").view(a)
            )
            kept = same_bits(value(TABLE["convert"].reference(x, dtype=b)), value(x))
            assert dt.embeds(a, b) == kept, (a, b)


# ---- the driver


def graph_of(text: str) -> Graph:
    return parse(text, TABLE)


TWICE = """graph twice(%0: f32[3] "x") {
  %1: f32[3] = negative(%0)  # user.py:1
  %2: f32[3] = negative(%1)  # user.py:2
  %3: f32[3] = exp(%0)  # user.py:3
  return %2
}
"""


def test_a_pass_that_changes_nothing_returns_the_same_graph():
    done = run(graph_of(TWICE), SIMPLIFY_PIPELINE)
    for name, one in PASSES.items():
        assert one.function(done) is done, name


def test_passes_can_be_skipped_by_name():
    with flags.SKIP("simplify,dce"):
        assert [n.op.name for n in run(graph_of(TWICE), SIMPLIFY_PIPELINE).nodes] == ["negative", "negative", "exp"]
    assert run(graph_of(TWICE), SIMPLIFY_PIPELINE).nodes == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("joins", "Did you mean 'concat_pads'"),
        ("twins", "Did you mean 'scan_dedup'"),
        ("dce,panels", "Did you mean 'tile_and_fuse'"),
        ("simplfy", "Did you mean 'simplify'"),
        ("split_complex", "the pass 'split_complex' is required"),
        ("x", "There are concat_pads, control, cse,"),
    ],
)
def test_passes_that_there_are_not_cannot_be_skipped(name, hint):
    with flags.SKIP(name), pytest.raises(ArgumentError, match=f"HF_SKIP.*{hint}"):
        optimize(graph_of(TWICE))


def test_stages_are_dumped_to_numbered_files_that_parse(tmp_path):
    graph = graph_of(TWICE)
    with flags.DUMP(str(tmp_path / "dump")):
        run(graph, SIMPLIFY_PIPELINE)
    files = sorted((tmp_path / "dump").iterdir())
    assert [re.sub(r"^\d+-", "", f.name) for f in files] == [
        "twice-input.ir",
        "twice-dce.ir",
        "twice-simplify.ir",
        "twice-dce.ir",
    ]
    assert files[0].read_text() == TWICE
    for file in files:
        graph_of(file.read_text())


def test_records_and_summary():
    records: list[Record] = []
    run(graph_of(TWICE), SIMPLIFY_PIPELINE, records)
    assert (records[0].name, records[0].before, records[0].after, records[0].changed) == ("dce", 3, 2, True)
    assert "simplify" in summary("twice", records)


def test_debug_levels_print(capsys):
    with flags.DEBUG(2):
        run(graph_of(TWICE), SIMPLIFY_PIPELINE)
    assert "passes on twice" in capsys.readouterr().err
    with flags.DEBUG(3):
        run(graph_of(TWICE), SIMPLIFY_PIPELINE)
    assert "# simplify\ngraph twice" in capsys.readouterr().err


def test_two_rewrites_that_undo_each_other_are_reported_when_verifying(capsys):
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((3,), dt.float32))
    graph = b.finish([b.minimum(x, x)])

    def swap(old: str, new: str) -> Pass:
        function = lambda g: rewrite(g, lambda b, n: b.emit(TABLE[new], *n.inputs) if n.op.name == old else None)  # noqa: E731
        return Pass(f"{old}-to-{new}", function)

    pipeline = [fix(swap("minimum", "maximum"), swap("maximum", "minimum"), limit=4)]
    with pytest.raises(CompileError, match="minimum-to-maximum, maximum-to-minimum still change 'graph' after 4"):
        run(graph, pipeline)
    with flags.VERIFY(0), flags.LOG("passes"):  # nobody's program is refused for it
        assert [n.op.name for n in run(graph, pipeline).nodes] == ["minimum"]
    assert "still change 'graph' after 4 rounds" in capsys.readouterr().err


def sines(b, c, a, z, n):
    """Two chains that are equal, which is found only link by link: each choice between two equals makes two equals."""
    for _ in range(n):
        a, z = b.sin(a), b.sin(b.where(c, a, z))
    return b.where(c, a, z)


def negations(b, c, a, z, n):
    for _ in range(n):
        a, z = b.tanh(a), b.tanh(b.where(c, b.negative(b.negative(z)), a))
    return b.subtract(a, z)


def sums_of_numbers(b, c, a, z, n):
    """Numbers that are equal once they are folded."""
    one, two = b.literal(1, dt.int64), b.literal(2, dt.int64)
    k = l = one
    for _ in range(n):
        k, l = b.add(k, one), b.where(b.equal(k, l), b.add(b.subtract(l, one), two), l)
        m = b.add(b.broadcast(b.convert(k, dtype=dt.float32), shape=(3,), axes=()), a)
        a = b.where(c, m, b.add(b.broadcast(b.convert(l, dtype=dt.float32), shape=(3,), axes=()), a))
    return a


def choices(b, c, a, z, n):
    """What a constant decides, which decides the next: each link has a value that no pass computes."""
    v = b.literal(0, dt.float32)
    for k in range(1, n):
        v = b.where(b.greater(v, b.literal(k, dt.float32)), b.tanh(v), v)
    return b.add(a, b.broadcast(v, shape=(3,), axes=()))


@pytest.mark.parametrize("program", [sines, negations, choices])
def test_equal_chains_are_found_in_few_rounds(program):
    rounds = []
    for n in (10, 300):
        b = GraphBuilder(TABLE)
        c, x = (b.parameter(TensorType((3,), dtype)) for dtype in (dt.bool_, dt.float32))
        records: list[Record] = []
        left = run(b.finish([program(b, c, x, x, n)]), SIMPLIFY_PIPELINE, records)
        assert len(left.nodes) <= n + 1
        rounds.append(len(records))
    assert rounds[0] == rounds[1]


def test_passes_that_are_not_done_refuse_no_program():
    b = GraphBuilder(TABLE)
    c, x = (b.parameter(TensorType((3,), dtype)) for dtype in (dt.bool_, dt.float32))
    graph = b.finish([sums_of_numbers(b, c, x, x, 60)])
    with flags.VERIFY(0):
        left = run(graph, SIMPLIFY_PIPELINE)
    arrays = [np.array([True, False, True]), np.array([1, 2, 3], np.float32)]
    np.testing.assert_array_equal(interpret(left, arrays)[0][0], interpret(graph, arrays)[0][0])


def test_a_pass_that_breaks_the_graph_is_named():
    graph = graph_of(TWICE)
    broken = Pass("drop-first", lambda g: g.rebuild({}, g.nodes[1:]))
    with pytest.raises(VerifyError, match=r"(?s)after pass 'drop-first': .*user\.py:2"):
        run(graph, [broken])
    with flags.VERIFY(0), pytest.raises(VerifyError, match="after the last pass"):
        run(graph, [broken])


# ---- single passes


def test_dce_keeps_what_may_raise():
    graph = graph_of("""graph g(%0: f32[3] "x", %1: i64[2] "i", %2: i32[] "n") {
      %3: f32[3] = exp(%0)
      %4: f32[2] = take(%3, %1) {axis=0}
      %5: i32[] = floor_divide(%2, %2)
      %6: f32[3] = sin(%0)
      return %0
    }""")
    assert [n.op.name for n in dce(graph).nodes] == ["exp", "take", "floor_divide"]


def test_dce_keeps_the_first_look_at_indices():
    """Behind a scatter that was told that they are known, and looks at nothing."""
    b = GraphBuilder(TABLE)
    x, i = b.parameter(TensorType((3,), dt.float32)), b.parameter(TensorType((2,), dt.int64))
    stored = b.scatter_set(x, i, b.parameter(TensorType((2,), dt.float32)), axis=0, known=True)
    for source in (x, stored):
        b.take(source, i, axis=0)
    assert [n.op.name for n in dce(b.finish([x])).nodes] == ["take"]


def test_cse_tells_zeros_and_types_of_attributes_apart():
    b = GraphBuilder(TABLE)
    nodes = [
        b.literal(v, d) for v, d in [(0.0, "f4"), (-0.0, "f4"), (0, "i4"), (0, "u4"), (np.nan, "f4"), (np.nan, "f4")]
    ]
    x = b.parameter(TensorType((2,), dt.float32))
    nodes += [b.pad(x, low=(1,), high=(0,), value=v) for v in (0.0, -0.0)]
    assert len(cse(b.finish(nodes)).nodes) == 7


def test_fold_never_grows_and_respects_symbols():
    b = GraphBuilder(TABLE)
    big = b.constant(value=Literal.of(np.zeros(1024, np.float32)))
    n = b.parameter(TensorType((Dim("n"),), dt.float32))
    graph = b.finish(
        [
            b.convert(big, dtype=dt.float64),  # 8 KiB
            b.broadcast(b.literal(1, dt.float32), shape=(7,), axes=()),
            b.broadcast(b.literal(1, dt.float32), shape=(Dim("n"),), axes=()),
            b.exp(b.literal(1, dt.float32)),  # the reference's bits are not the kernel's
            b.floor_divide(b.literal(1, dt.int32), b.literal(0, dt.int32)),  # raises, but when run
            n,
        ]
    )
    assert fold(graph) is graph


def test_rewritten_nodes_keep_the_users_line():
    graph = graph_of("""graph g(%0: f32[3] "x") {
      %1: f32[] = constant() {value=f32[] 4.0}  # user.py:1
      %2: f32[3] = broadcast(%1) {axes=(), shape=(3,)}  # user.py:1
      %3: f32[3] = divide(%0, %2)  # user.py:7
      return %3
    }""")
    after = dce(simplify(graph))
    assert {n.where for n in after.nodes} == {"user.py:7"}


def test_a_pattern_binds_equal_parts_to_one_node():
    X, Y = Value(), Value()
    b = GraphBuilder(TABLE)
    x, y = (b.parameter(TensorType((), dt.float32)) for _ in range(2))
    inner = -X
    match = find(inner * Y, b.multiply(y, b.negative(x)))
    assert match is not None and match[X] is x and match[Y] is y and match[inner].op.name == "negative"
    assert find(op.maximum(X, X), b.maximum(x, y)) is None
    assert find(X - -Y, b.subtract(b.negative(x), y)) is None, "subtract does not commute"


def test_the_pipeline_is_skipped_whole_by_skipping_each_pass():
    graph = graph_of(TWICE)
    with flags.SKIP(",".join(SKIPPABLE)):
        assert run(graph, [DCE, *SIMPLIFY_PIPELINE]) is graph


# ---- sums of parts


def sum_of_parts(rng: np.random.Generator, dtype: np.dtype) -> tuple[Graph, list[np.ndarray]]:
    """A sum of slices' derivatives, in any order, with whole arrays and parts that overlap between them."""
    width, extent = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    ends = sorted({0, extent, *rng.integers(0, extent + 1, 3).tolist()})
    cuts: list[tuple[int, int] | None] = list(itertools.pairwise(ends))
    rng.shuffle(cuts)
    cuts = cuts[: 1 + int(rng.integers(0, len(cuts) + 1))]
    for _ in range(int(rng.integers(0, 3))):
        other = None if rng.random() < 0.5 else (0, int(rng.integers(0, extent + 1)))
        cuts.insert(int(rng.integers(0, len(cuts) + 1)), other)
    b, arrays, total = GraphBuilder(TABLE), [], None
    for cut in cuts:
        start, stop = cut or (0, extent)
        arrays.append(rng.choice(edges(dtype), (width, stop - start)))
        term = b.parameter(TensorType((width, stop - start), dtype))
        if cut is not None:
            term = b.pad(term, low=(0, start), high=(0, extent - stop), interior=(0, 0), value=0)
        total = term if total is None else b.add(total, term)
    return b.finish([total]), arrays


@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.int16], ids=str)
def test_joined_parts_have_the_bits_of_their_sum(dtype):
    """With zeros of both signs, infinities and NaNs."""
    rng = np.random.default_rng(5)
    joined = 0
    for _ in range(60):
        graph, arrays = sum_of_parts(rng, dtype)
        after = assert_same_results(graph, *arrays)
        joined += any(node.op.name == "concat" for node in after.nodes)
    assert joined > 15


# ---- few elements that are looked up, sums of one element a line


def look_up(rng: np.random.Generator, name: str, dtype: np.dtype) -> tuple[Graph, list[np.ndarray]]:
    """An expression of arrays of three axes, some of them broadcast, of which a few elements are looked up."""
    shape, axis = tuple(int(n) for n in rng.integers(1, 4, 3)), int(rng.integers(0, 3))
    shape = (*shape[:axis], 12, *shape[axis + 1 :])
    b, arrays, terms = GraphBuilder(TABLE), [], []
    for _ in range(int(rng.integers(1, 4))):
        axes = tuple(a for a in range(3) if rng.random() < 0.7)
        part = tuple(shape[a] for a in axes)
        arrays.append(rng.choice(edges(dtype), part))
        terms.append(b.broadcast(b.parameter(TensorType(part, dtype)), shape=shape, axes=axes))
    total = terms[0]
    for term in (*terms[1:], rng.choice(terms)):
        total = b.add(b.negative(total), term)
    places = (*shape[:axis], 2, *shape[axis + 1 :]) if name == "take_along_axis" else (1, 3)
    arrays.append(rng.integers(-12, 12, places))
    indices = b.parameter(TensorType(places, dt.int64))
    return b.finish([b.emit(TABLE[name], total, indices, axis=axis)]), arrays


@pytest.mark.parametrize("name", ["take", "take_along_axis"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.int16], ids=str)
def test_what_is_looked_up_has_the_bits_of_the_whole(name, dtype):
    rng = np.random.default_rng(6)
    changed = 0
    for _ in range(40):
        graph, arrays = look_up(rng, name, dtype)
        after = assert_same_results(graph, *arrays)
        changed += after.outputs[0].op.name == "add"
    assert changed > 10


def test_what_is_looked_up_is_not_there_for_every_row():
    """Neither forwards nor backwards is there an array of all classes, but for the gradient itself; and indices are
    checked as before."""
    rng = np.random.default_rng(7)
    x, labels = rng.standard_normal((40, 300)).astype(np.float32), rng.integers(-300, 300, (40, 1))

    def loss(x, labels):
        return -hf.sum(hf.take_along_axis(hf.nn.log_softmax(x), labels, axis=1))

    def both(x, labels):
        return hf.value_and_grad(loss)(x, labels)

    compiled = hf.function(both)
    value, gradient = compiled(x, labels)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(1, keepdims=True)
    one = np.arange(300) == labels % 300
    np.testing.assert_allclose(value, -np.log(exact[one]).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, exact - one, atol=1e-6)
    for found, wanted in zip((value, gradient), both(hf.asarray(x), hf.asarray(labels))):
        assert same_bits(np.asarray(found), np.asarray(wanted))
    (arena,) = [row["bytes"] for row in compiled.memory_plan(x, labels) if row["kind"] == "arena"]
    assert arena < x.nbytes / 4
    labels[3] = 300
    with pytest.raises(IndexError, match="-300 <= index < 300"):
        compiled(x, labels)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.int16], ids=str)
@pytest.mark.parametrize("index", [dt.int32, dt.int64], ids=str)
def test_sums_of_one_element_a_line(dtype, index):
    """Zeros of both signs, infinities and NaNs added to a number; any axis; indices that count from the end."""
    rng = np.random.default_rng(8)
    for shape, axis in (((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((0, 3), 1), ((1, 1), 0)):
        b = GraphBuilder(TABLE)
        lines = (*shape[:axis], 1, *shape[axis + 1 :])
        base = b.broadcast(b.literal(-0.0 if dt.is_float(dtype) else 3, dtype), shape=shape, axes=())
        places, updates = b.parameter(TensorType(lines, index)), b.parameter(TensorType(lines, dtype))
        graph = b.finish([b.scatter_add_along_axis(base, places, updates, axis=axis)])
        arrays = rng.integers(-shape[axis], shape[axis], lines).astype(index), rng.choice(edges(dtype), lines)
        after = assert_same_results(graph, *arrays)
        assert not any(node.op.kind is Kind.SCATTER for node in after.nodes)
        if arrays[0].size:
            arrays[0].flat[0] = shape[axis]
            with pytest.raises(IndexError):
                interpret(after, arrays)
