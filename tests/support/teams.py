"""Programs on a number of threads, for tests: also those that are too small for it to pay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hybridflow.runtime.thread_pool_words import LEAST, LOOKING, PIECE, SLEEPING, THREADS, words
from hybridflow.runtime.threads import thread_pool


@contextlib.contextmanager
def threads(number: int, all_programs: bool = True) -> Iterator[None]:
    """Inside of the block programs run on so many threads, ``all_programs`` in as many pieces as their grains allow."""
    assert thread_pool.problem() is None
    before = words[:]
    words[THREADS] = number
    if all_programs:
        words[LEAST], words[PIECE], words[LOOKING], words[SLEEPING] = 0, 1, 0, 0
    try:
        yield
    finally:
        words[:] = before
