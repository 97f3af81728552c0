"""Random programs: passes change no bit of any result, whichever of them run; and so does compiling.

``--fuzz N`` runs N programs, ``--fuzz-seed S`` begins elsewhere.  A failure is cut down to one value and printed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow import flags
from hybridflow.compiler.interpret import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.table import Kind, OpDef
from hybridflow.compiler.passes.driver import run
from hybridflow.compiler.passes.standard import PASSES, SIMPLIFY_PIPELINE

from .bits import same_bits
from .random_programs import RandomProgram, random_program, smallest_failing

BATCH = 20  # programs per test, so that a run of many is still a short list


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("--fuzz-seed"), metafunc.config.getoption("--fuzz")
        starts = range(first, first + count, BATCH)
        batches = [range(start, min(start + BATCH, first + count)) for start in starts]
        metafunc.parametrize("seeds", batches, ids=[f"{b.start}-{b.stop - 1}" for b in batches])


def results(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        outputs, updates = interpret(graph, arrays)
    return [*outputs, *(updates[i] for i in sorted(updates))]


def report(program: RandomProgram, fails: Any) -> str:
    small = smallest_failing(program, fails)
    arrays = "".join(f"%{i} = {x!r}\n" for i, x in enumerate(small.arrays) if x.size < 100)
    return f"\n{to_text(small.graph)}{arrays}"


def independent_of_layout(op: OpDef, dtype: Any) -> bool:
    """Whether NumPy's result does not depend on how the arguments lie in memory, as its float sums do."""
    return bool(op.facts.get("exact")) or op.kind is Kind.ELEMENTWISE or not dt.is_float(dtype)


def test_passes_change_no_bits(seeds: range) -> None:
    for seed in seeds:
        program = random_program(seed, allowed=independent_of_layout)
        skipped = ",".join(name for name in PASSES if np.random.default_rng(seed).random() < 0.3)

        def fails(p: RandomProgram, skipped: str = skipped) -> bool:
            with flags.SKIP(skipped):
                after = run(p.graph, SIMPLIFY_PIPELINE)
            return not all(map(same_bits, results(p.graph, p.arrays), results(after, p.arrays)))

        assert not fails(program), report(program, fails)


def test_text_reads_back(seeds: range) -> None:
    for seed in seeds:
        text = to_text(random_program(seed).graph)
        assert to_text(parse(text, TABLE)) == text
