"""Flags: an environment variable and a context manager in one object, read at import and cheap to test.

``HF_DEBUG=2 python train.py`` and ``with flags.DEBUG(2): ...`` set the same thing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

RELEASE = "0.1.0"  # the version of hybridflow, which files that it writes say

T = TypeVar("T", int, str)


class Flag(Generic[T]):
    """One setting.  ``flag.value`` reads it, ``with flag(v):`` changes it for a block."""

    def __init__(self, name: str, default: T, doc: str, choices: tuple[T, ...] = ()) -> None:
        self.name, self.doc = name, doc
        self.choices: tuple[T, ...] = choices
        self.default: T = default
        text = os.environ.get(name, "")
        try:
            self.value: T = self._checked(type(default)(text) if text else default)
        except ValueError:
            kind = f"one of {', '.join(map(str, choices))}" if choices else type(default).__name__
            raise ValueError(f"[flags] {name}={text!r} is not {kind}; {doc}") from None

    def _checked(self, value: T) -> T:
        if self.choices and value not in self.choices:
            raise ValueError(f"[flags] {self.name} is one of {', '.join(map(str, self.choices))}, not {value!r}")
        return value

    @contextmanager
    def __call__(self, value: T) -> Iterator[None]:
        before, self.value = self.value, self._checked(value)
        try:
            yield
        finally:
            self.value = before


DEBUG = Flag("HF_DEBUG", 0, "1 checks graphs after each pass, 2 times the passes too, 3 shows graphs, 4 and LLVM IR")
LOG = Flag("HF_LOG", "", "comma-separated topics to log: retrace, cache, kernels, passes")
TRACEBACK = Flag("HF_TRACEBACK", "short", "full shows hybridflow's own frames in the tracebacks of its errors")
SKIP = Flag("HF_SKIP", "", "comma-separated names of passes to leave out")
DUMP = Flag("HF_DUMP", "", "folder that receives the text of each stage")
VERIFY = Flag(
    "HF_VERIFY",
    0,
    "1 holds graphs against every rule after each pass, and has native calls count references and poison their stack",
)
POISON = Flag("HF_POISON", 0, "1 fills fresh and freed memory with NaN, to expose reads of dead values")
CACHE_DIR = Flag("HF_CACHE_DIR", "", "folder in which the on-disk cache of machine code has its own; 'off' disables it")
KEEP_TEXT = Flag(
    "HF_KEEP_TEXT",
    "auto",
    "keep the text that exec and consoles compile: 1 from the start, 0 never, auto in consoles",
)
CACHE_LIMIT = Flag("HF_CACHE_LIMIT", 512 << 20, "bytes on disk of the cache of machine code")
OPT = Flag(
    "HF_OPT",
    "auto",
    "LLVM's level of code generation for kernels: 0 compiles fastest, 2 runs fastest; auto is 0 first and then 2",
    ("auto", "0", "1", "2"),
)
NATIVE_AFTER = Flag(
    "HF_NATIVE_AFTER", 32, "calls that Python answers before native code for calls is made, where none is on disk"
)
SCHEDULE = Flag(
    "HF_SCHEDULE", 0, "number of the schedule of each kernel among those that give its bits; 0 takes the best"
)
NUM_THREADS = Flag("HF_NUM_THREADS", 0, "threads that a program may run on; 1 for none but its caller's, 0 chooses")

ALL = (
    DEBUG,
    LOG,
    TRACEBACK,
    SKIP,
    DUMP,
    VERIFY,
    POISON,
    CACHE_DIR,
    CACHE_LIMIT,
    KEEP_TEXT,
    OPT,
    NATIVE_AFTER,
    SCHEDULE,
    NUM_THREADS,
)


def logs(topic: str) -> bool:
    """Whether HF_LOG names the topic."""
    return topic in LOG.value.split(",")
