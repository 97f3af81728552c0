"""The fuzzer: a program from each seed, and its symbolic twin, compiled and not.

``python -m tests.support.fuzz 0 20000`` runs the programs of those seeds and prints each failure as a small program
that can be run; ``--minutes 9`` stops in time and says where to go on.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterator

from hybridflow import flags
from tests.support import avx512_machine
from tests.support.compare_programs import Difference, difference
from tests.support.programs import Program
from tests.support.random_programs import random_program, turned_program
from tests.support.shrink import shrunk
from tests.support.symbolic_twins import symbolic_twin

BATCH = 20
TURNED = 3  # one seed in so many has a program of transposed operands too
THOROUGH = 8  # one batch in so many is compiled with the code generator's usual level


@contextlib.contextmanager
def fast_compiler(level: int = 0) -> Iterator[None]:
    """LLVM's fast code generator, which takes a third of the time; nothing is kept on disk, as no program is met
    twice."""
    with flags.OPT(str(level)), flags.CACHE_DIR("off"), flags.VERIFY(1):
        yield


def programs(seed: int) -> Iterator[Program]:
    program = random_program(seed)
    yield program
    twin = symbolic_twin(program, seed)
    if twin is not None:
        yield twin
    if seed % TURNED == 0:
        yield turned_program(seed)


def found_difference(program: Program) -> Difference | None:
    """Like ``difference``; an error of the machinery itself is one too."""
    try:
        return difference(program)
    except Exception as error:
        return Difference("crash", f"{type(error).__name__}: {error}")


def failure(seed: int, seconds: float = 60.0, counts: Counter[str] | None = None) -> str | None:
    """The first failure of a seed's programs, cut down, as text; None if there is none.  Counts the programs that ran,
    in all and by what was asked of them."""
    for program in programs(seed):
        if counts is not None:
            asked = [
                name
                for name in ("threads", "donated", "poisoned", "tapes", "forward")
                if getattr(program.settings, name)
            ]
            counts.update(["programs", *asked])
        found = found_difference(program)
        if found is not None:
            kind = found.kind

            def fails(smaller: Program, kind: str = kind) -> bool:
                again = found_difference(smaller)
                return again is not None and again.kind == kind

            small = shrunk(program, fails, seconds)
            found = found_difference(small) or found
            return f"seed {seed}, {found.kind}: {found.text}\n{small.text()}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--shrink", type=float, default=20.0, metavar="S", help="seconds for cutting down a failure")
    parser.add_argument("--log", default="", help="file that always holds the present seed, for programs that crash")
    options = parser.parse_args()
    avx512_machine.install_if_asked()
    logging.getLogger("hybridflow").setLevel(logging.ERROR)  # many functions are traced again
    run(options.first, options.count, options.minutes, options.shrink, options.log)


def run(first: int, count: int, minutes: float, shrink: float, log: str) -> None:
    end = time.monotonic() + 60 * minutes
    counts: Counter[str] = Counter()
    start, stop = first, first + count
    while start < stop and time.monotonic() < end:
        batch = range(start, min(start // BATCH * BATCH + BATCH, stop))
        with fast_compiler(2 if start // BATCH % THOROUGH == 0 else 0):
            for seed in batch:
                if log:
                    with open(log, "w") as file:
                        file.write(f"{seed}\n")
                text = failure(seed, shrink, counts)
                if text is not None:
                    counts["failures"] += 1
                    print(text, flush=True)
        start = batch.stop
    print(f"{dict(counts)}; next seed {start}", flush=True)


if __name__ == "__main__":
    main()
