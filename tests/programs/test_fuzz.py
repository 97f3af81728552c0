"""Random programs: compiled or not, static or symbolic, whichever passes run, they do the same.

``--fuzz N`` runs N programs, ``--fuzz-seed S`` begins elsewhere.  A failure is cut down and printed as a module that
can be run.  ``python -m tests.support.fuzz`` does the same for hours, and measures what the programs reach.
"""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.compiler.passes.pass_manager import run
from hybridflow.compiler.passes.pass_pipeline import SIMPLIFY_PIPELINE, SKIPPABLE, SPLIT_COMPLEX
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.eager import single_op_programs
from hybridflow.errors import HybridflowError
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.compare_programs import compare, difference
from tests.support.fuzz import failure, fast_compiler
from tests.support.graph_shapes import GRAPH_SHAPES
from tests.support.programs import Program, Settings, Values
from tests.support.random_programs import Generator, traced
from tests.support.shrink import shrunk
from tests.support.symbolic_twins import symbolic_twin

pytestmark = pytest.mark.code


@pytest.mark.slow
@pytest.mark.sample(3)
def test_compiled_programs_do_what_eager_ones_do(seeds: range) -> None:
    with fast_compiler():
        for seed in seeds:
            text = failure(seed)
            assert text is None, text


# ---- passes and text, on the graphs of such programs


def independent_of_layout(node: Node) -> bool:
    """Whether NumPy's result does not depend on how the arguments lie in memory, as its float sums do."""
    if node.op.facts.get("exact") or node.op.kind is Kind.ELEMENTWISE:
        return True
    return not any(dt.is_inexact(source.dtype) for source in node.inputs)


def interpreted(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray] | type[Exception]:
    with np.errstate(all="ignore"):
        try:
            outputs, updates = interpret(graph, arrays)
        except HybridflowError as error:
            return type(error)
    return [*outputs, *(updates[i] for i in sorted(updates))]


@pytest.mark.sample(2)
def test_passes_change_no_bits(seeds: range) -> None:
    skipped = ",".join(name for name in SKIPPABLE if np.random.default_rng(seeds.start).random() < 0.3)
    for seed in seeds:
        found = traced(seed)
        if found is None:
            continue
        # Complex numbers are computed as pairs of real ones, which have bits of their own: NumPy's are others.
        graph, arrays = run(found[0], [SPLIT_COMPLEX]), found[1]
        if not all(map(independent_of_layout, graph.nodes)):
            continue
        with flags.SKIP(skipped):
            after = run(graph, SIMPLIFY_PIPELINE)
        expected, got = interpreted(graph, arrays), interpreted(after, arrays)
        if isinstance(expected, list) and isinstance(got, list):
            same = all(map(same_bits, expected, got))
        else:
            same = expected == got
        assert same, f"program {seed}, skipped: {skipped}\n{to_text(graph)}"


def test_text_reads_back(seeds: range) -> None:
    for seed in seeds:
        found = traced(seed)
        if found is not None:
            text = to_text(found[0])
            assert to_text(parse(text, TABLE)) == text


# ---- graphs that once differed


def eager_results(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """One op at a time, each by the program that serves all shapes."""
    values = dict(zip(graph.inputs, arrays))
    for node in graph.nodes:
        result = single_op_programs.run(node.op, tuple(values[n] for n in node.inputs), node.attrs, node.type)
        values[node] = np.asarray(result, node.dtype)
    return [values[node] for node in graph.results]


def compiled_results(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    arrays = [x.copy() for x in arrays]  # state is updated in place
    outputs = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    return [*outputs, *(arrays[i] for i in sorted(graph.updates))]


FOUND = {  # programs that once differed
    "a slice of one element, which reads where a loop over one element stands": """graph g(%0: u8[6] "x") {
      %1: bool[6] = convert(%0) {dtype=bool}
      %2: bool[1] = slice(%1) {start=(0,), step=(1,), stop=(1,)}
      %3: bool[1] = slice(%1) {start=(1,), step=(1,), stop=(2,)}
      %4: bool[1] = bitwise_xor(%2, %3)
      return %1, %2, %4
    }""",
    "an empty slice": """graph g(%0: u32[1] "x", %1: u32[0] "y") {
      %2: u32[1] = bitwise_invert(%0)
      %3: u32[0] = bitwise_invert(%1)
      %4: u32[0] = slice(%2) {start=(0,), step=(1,), stop=(0,)}
      %5: u32[0] = bitwise_xor(%3, %4)
      return %2, %3, %5
    }""",
    "one new value for two states": """graph g(%0: f32[6] "a" state, %1: f32[6] "b" state) {
      %2: f32[6] = subtract(%0, %1)
      return
      update %0 = %2
      update %1 = %2
    }""",
    "a conversion from float64 to float16, by way of float32, of a constant": """graph g() {
      %0: f16[] = constant() {value=f16[] 2.0}
      %1: f16[] = acosh(%0)
      return %1
    }""",
    "scratch of two constant sizes": """graph g(%0: u32[3,65] "x") {
      %1: i64[3,65] = argsort(%0) {axis=1, descending=False}
      return %1
    }""",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND.keys())
def test_found_graphs_have_the_bits_of_eager_ones(text: str) -> None:
    graph = parse(text, TABLE)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 99, n.shape).astype(n.dtype) for n in graph.inputs]
    for expected, found in zip(eager_results(graph, arrays), compiled_results(graph, arrays)):
        assert same_bits(expected, found)


# ---- functions that once differed

FOUND_FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any], list[Values]]] = {
    "a product of one column and an open number of rows, with an epilogue": (
        lambda x, w: x @ w + x,
        [hf.TensorSpec((None, 1)), hf.TensorSpec((1, 1))],
        [Values("float32", (9, 1), seed=1), Values("float32", (1, 1), seed=2)],
    ),
    "integers that were stored in eight bits of a float, whose bounds nobody knows": (
        lambda x: hf.astype(hf.astype(hf.astype(x, "float8_e5m2"), "int32"), "int64") >= 3,
        [],
        [Values("int32", (3, 5), seed=1)],
    ),
    "a product of complex numbers, one of them infinite, which begins with 1 once or more often": (
        lambda x: hf.prod(hf.complex(x, x), axis=0),
        [],
        [Values("float64", (4, 5), kind="edges", seed=699958)],
    ),
}


@pytest.mark.parametrize("name", FOUND_FUNCTIONS)
@pytest.mark.parametrize("tapes", [0, 1, 2])
def test_found_functions_do_what_eager_ones_do(name: str, tapes: int) -> None:
    python, signature, arguments = FOUND_FUNCTIONS[name]

    def make(function: Any) -> tuple[Callable[..., Any], list[hf.Variable]]:
        return function(input_signature=signature or None)(python), []

    found = compare(make, [arguments, arguments], Settings(tapes=tapes))
    assert found is None, found


# ---- the fuzzer itself


@functools.cache
def _many() -> tuple[Counter[str], list[Program]]:
    """Which shapes of graphs have grown in how many of 400 programs, and the programs."""
    grown: Counter[str] = Counter()
    programs = []
    for seed in range(400):
        generator = Generator(seed)
        programs.append(generator.generate())
        grown.update(set(generator.grown))
    return grown, programs


@pytest.mark.slow
def test_each_shape_of_graph_is_common() -> None:
    grown, programs = _many()
    for name, shape in GRAPH_SHAPES.items():
        assert grown[name] >= 7 * shape.weight, name
    texts = [program.text() for program in programs]
    for feature in (".assign", "def f", "hf.GradientTape", "bad index", "bad divisor", "(0, ", "(1, ", "::-", "edges"):
        assert sum(feature in text for text in texts) >= 8, feature
    twins = [twin for seed, program in enumerate(programs[:100]) if (twin := symbolic_twin(program, seed))]
    assert len(twins) >= 25
    assert sum(".shape[0]" in twin.text() for twin in twins if twin.open) >= 4  # extents calculated from open ones
    assert all({0, 1} & {n for row in twin.calls for v in row for n in v.shape} for twin in twins)


def test_programs_come_back_from_their_seed_and_run_as_they_are_printed() -> None:
    for seed in range(20):
        program, again = Generator(seed).generate(), Generator(seed).generate()
        assert repr(again) == repr(program)  # a NaN among the arguments is not equal to itself
        assert again.text() == program.text()


def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in compiled programs: prefix sums run the other way."""
    right = hf.cumulative_sum

    def wrong(x: Any, axis: int | None = None, **options: Any) -> hf.Tensor:
        found = right(x, axis=axis, **options)
        return found if type(found) is hf.Tensor else hf.flip(found, axis=axis)

    monkeypatch.setattr(hf, "cumulative_sum", wrong)


def test_a_planted_defect_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    _planted(monkeypatch)

    def fails(program: Program) -> bool:
        found = difference(program)
        return found is not None and found.kind == "value"

    with fast_compiler():
        using = (p for p in _many()[1] if "cumulative_sum" in p.text() and not p.settings.tapes)
        program = next(p for p in using if fails(p))
        small = shrunk(program, fails)
    assert len(small.main.statements) <= 2 and len(small.calls) == 1
    assert any("cumulative_sum" in s.text for s in small.main.statements)


SIDES: dict[str, tuple[Callable[..., Any], str]] = {
    "value": (lambda V, x: x + 1.0, "value"),
    "dtype": (lambda V, x: hf.astype(x, "float64"), "type"),
    "error": (lambda V, x: hf.reshape(x, (7,)), "error"),
    "state": (lambda V, x: (V.assign(x), x * 1.0)[1], "state"),
}


@pytest.mark.parametrize("side", SIDES)
def test_what_is_compared(side: str) -> None:
    """Each kind of difference between the two sides is seen."""
    other, kind = SIDES[side]

    def make(function: Any) -> tuple[Callable[..., Any], list[hf.Variable]]:
        V = hf.Variable(np.zeros(3, np.float32))
        if function is hf.function:
            return lambda x: other(V, x), [V]
        return lambda x: x * 1.0, [V]

    found = compare(make, [[Values("float32", (3,), seed=1)]], Settings())
    assert found is not None and found.kind == kind


def test_held_values_are_compared() -> None:
    def make(function: Any) -> tuple[Callable[..., Any], list[hf.Variable]]:
        V = hf.Variable(np.zeros(3, np.float32))

        def program(x: Any) -> Any:
            if function is hf.function:
                array = V.value().numpy()
                ctypes.memset(array.ctypes.data, 1, array.nbytes)
                V.assign(hf.asarray(np.zeros(3, np.float32)))
            return x * 1.0

        return program, [V]

    found = compare(make, [[Values("float32", (3,), seed=1)]], Settings(held=True))
    assert found is not None and found.kind == "held"
