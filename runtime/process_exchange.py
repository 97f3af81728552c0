"""The native exchange between processes, from Python: groups, records of what is exchanged, and who calls it."""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow import flags
from hybridflow.compiler.program import EXCHANGE, INTERRUPT_POLL
from hybridflow.runtime import host_interface, interrupt_checks, process_exchange_words as words, uninterruptible
from hybridflow.runtime.native import native_functions

_SYMBOLS = (EXCHANGE, "group_exchange", "current")
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64
PIECE = 1 << 19  # bytes of the elements of a round, which stay in the cache until others have read them
WHOLE = 1 << 15  # bytes up to which each process adds up all elements by itself


@uninterruptible.loaded
def _code() -> ModuleType:
    from hybridflow.runtime import process_exchange_code  # only where the disk cache has no machine code for it

    return process_exchange_code


@uninterruptible.once
def _loaded() -> dict[str, int]:
    """Addresses by symbol."""
    checked = bool(flags.VERIFY.value)
    settings = "exchange", time.CLOCK_MONOTONIC, checked
    imports = {INTERRUPT_POLL: interrupt_checks.imports()[INTERRUPT_POLL]}
    return native_functions.load(lambda: _code().build(checked), settings, _SYMBOLS, imports)


@uninterruptible.once
def exchange() -> Callable[..., int]:
    """``group_exchange(group, record, source, target, polls)``."""
    return ctypes.CFUNCTYPE(_WORD, *[_POINTER] * 4, _WORD)(_loaded()["group_exchange"])


def set_current(address: int) -> None:
    """Have programs exchange with the group whose words are at an address; 0 for none."""
    host_interface.functions[EXCHANGE] = _loaded()[EXCHANGE]
    ctypes.c_int64.from_address(_loaded()["current"]).value = address


def hash_of(text: str) -> int:
    """What stands for a text in headers."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little", signed=True)


def kind_of(dtype: np.dtype[Any]) -> int | None:
    """The position of a dtype among those that native code adds, None for others."""
    kind = "i" if dtype.kind == "u" else dtype.kind
    return next((k for k, (name, _) in enumerate(words.DTYPES) if name == f"{kind}{dtype.itemsize}"), None)


def gather_record(what: str, note: str, rows: Sequence[int], row_bytes: int) -> tuple[int, ...]:
    """What gathers rows, of which each process has so many."""
    return _record(what, note, rows, (), KIND=words.GATHER, ROW_BYTES=row_bytes)


def sum_record(
    what: str, note: str, rows: Sequence[int], steps: Sequence[int], dtype: np.dtype[Any], count: int, half: int
) -> tuple[int, ...]:
    """What adds nodes up by a tree: ``steps`` say how, of rows of ``count`` elements of a dtype that has a kind."""
    kind, most, size = kind_of(dtype), max(*rows, 1), dtype.itemsize
    assert kind is not None
    shared = count * size > WHOLE
    # Nodes of a piece, and behind them the sums of another.
    chunk = min(half // ((most + 1) * size), PIECE // size) & ~15
    return _record(
        what, note, rows, steps, KIND=words.SUM, ELEMENT=size, ADD=kind, COUNT=count, CHUNK=chunk, SHARED=int(shared)
    )


def _record(what: str, note: str, rows: Sequence[int], steps: Sequence[int], **fields: int) -> tuple[int, ...]:
    text = note.encode("utf-8", "replace")[: words.TEXT_ROOM]
    fields = {**fields, "HASH": hash_of(what), "ROWS": max(rows), "STEPS": len(steps), "TEXT_LENGTH": len(text)}
    head = [0] * words.WORDS
    for name, value in fields.items():
        head[getattr(words, name)] = value
    padded = text + bytes(-len(text) % 8)
    return (*head, *rows, *steps, *map(int, np.frombuffer(padded, np.int64)))
