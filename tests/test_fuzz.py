"""Random programs: passes change no bit of any result, whichever of them run; and so does compiling.

``--fuzz N`` runs N programs, ``--fuzz-seed S`` begins elsewhere.  A failure is cut down to one value and printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from hybridflow import flags, one_op
from hybridflow.compiler.interpret import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.table import Kind, OpDef
from hybridflow.compiler.passes.driver import run
from hybridflow.compiler.passes.standard import PASSES, SIMPLIFY_PIPELINE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu, host

from .bits import same_bits
from .random_programs import RandomProgram, random_program, smallest_failing

Fails = Callable[[RandomProgram], bool]

BATCH = 20  # programs per test, so that a run of many is still a short list
COMPILED_SHARE = 5  # one program in so many is compiled as well, which takes a hundred times as long


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("--fuzz-seed"), metafunc.config.getoption("--fuzz")
        starts = range(first, first + count, BATCH)
        batches = [range(start, min(start + BATCH, first + count)) for start in starts]
        metafunc.parametrize("seeds", batches, ids=[f"{b.start}-{b.stop - 1}" for b in batches])


def first_that_fails(seeds: Iterable[int], make: Callable[[int], RandomProgram], fails: Fails) -> str | None:
    """The text of the first program that fails, cut down to one value, with its arguments."""
    for seed in seeds:
        program = make(seed)
        if fails(program):
            small = smallest_failing(program, fails)
            arrays = "".join(f"%{i} = {x!r}\n" for i, x in enumerate(small.arrays) if x.size < 100)
            return f"program {seed}\n{to_text(small.graph)}{arrays}"
    return None


def results(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        outputs, updates = interpret(graph, arrays)
    return [*outputs, *(updates[i] for i in sorted(updates))]


def independent_of_layout(op: OpDef, dtype: Any) -> bool:
    """Whether NumPy's result does not depend on how the arguments lie in memory, as its float sums do."""
    return bool(op.facts.get("exact")) or op.kind is Kind.ELEMENTWISE or not dt.is_float(dtype)


def test_passes_change_no_bits(seeds: range) -> None:
    skipped = ",".join(name for name in PASSES if np.random.default_rng(seeds.start).random() < 0.3)

    def fails(p: RandomProgram) -> bool:
        with flags.SKIP(skipped):
            after = run(p.graph, SIMPLIFY_PIPELINE)
        return not all(map(same_bits, results(p.graph, p.arrays), results(after, p.arrays)))

    failed = first_that_fails(seeds, lambda seed: random_program(seed, allowed=independent_of_layout), fails)
    assert failed is None, f"skipped: {skipped}\n{failed}"


def eager_results(program: RandomProgram) -> list[np.ndarray]:
    """One op at a time, each by the program that serves all shapes."""
    values = dict(zip(program.graph.inputs, program.arrays))
    for node in program.graph.nodes:
        result = one_op.run(node.op, tuple(values[n] for n in node.inputs), node.attrs, node.type)
        values[node] = np.asarray(result, node.dtype)
    return [values[node] for node in program.graph.results]


def compiled_results(program: RandomProgram) -> list[np.ndarray]:
    arrays = [x.copy() for x in program.arrays]  # state is updated in place
    outputs = cpu.load(compile_graph(program.graph, host.target())).run(arrays)
    return [*outputs, *(arrays[i] for i in sorted(program.graph.updates))]


def test_compiled_programs_have_the_bits_of_eager_ones(seeds: range) -> None:
    def fails(p: RandomProgram) -> bool:
        return not all(map(same_bits, eager_results(p), compiled_results(p)))

    failed = first_that_fails(seeds[::COMPILED_SHARE], random_program, fails)
    assert failed is None, failed


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
def test_found_programs_have_the_bits_of_eager_ones(text: str) -> None:
    graph = parse(text, TABLE)
    rng = np.random.default_rng(0)
    program = RandomProgram(graph, [rng.integers(0, 99, n.shape).astype(n.dtype) for n in graph.inputs])
    for expected, found in zip(eager_results(program), compiled_results(program)):
        assert same_bits(expected, found)


def test_text_reads_back(seeds: range) -> None:
    for seed in seeds:
        text = to_text(random_program(seed).graph)
        assert to_text(parse(text, TABLE)) == text
