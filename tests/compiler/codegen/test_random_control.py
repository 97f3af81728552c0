"""Random control flow: the interpreter and compiled code agree in every bit, and in their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow import errors, flags
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.support.fuzz import fast_compiler
from tests.support.random_control import Generator


def outcome(run: Any) -> Any:
    """The bits of all results, or the error with its line."""
    try:
        with np.errstate(all="ignore"):
            return [(np.asarray(x).dtype.str, np.asarray(x).shape, np.asarray(x).tobytes()) for x in run()]
    except errors.HybridflowError as error:
        return type(error).__name__


BLOCKS = 8


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs(block, request):
    count = max(request.config.getoption("fuzz") // BLOCKS, 1)
    first = request.config.getoption("fuzz_seed") + count * block
    for seed in range(first, first + count):
        graph, arrays = Generator(seed, symbolic=seed % 3 == 0).program()
        verify(graph)
        text = to_text(graph)
        assert to_text(parse(text, TABLE)) == text
        want = outcome(lambda graph=graph, arrays=arrays: interpret(graph, arrays)[0])
        skipped, level = ("", "cse", "dce,fold", "simplify", "control")[seed % 5], 0 if seed % 16 else 2
        with flags.SKIP(skipped), fast_compiler(level):
            executable = cpu.load(compile_graph(graph, host_target.target()))
        assert outcome(lambda executable=executable, arrays=arrays: executable.run(arrays)) == want, (
            f"seed {seed}\n{text}"
        )
