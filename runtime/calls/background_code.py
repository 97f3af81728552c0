"""Native modules of the runtime's own, compiled in the background: calls do without them until they are there.

The first code is of LLVM's level 0, which takes a fifth of the time.  Better code follows, to which the functions of
the first pass their calls on: whoever has their addresses may keep them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from hybridflow import flags
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.machine import machine_code
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import WORD

T = TypeVar("T")


class BackgroundCode(Generic[T]):
    """What ``compute`` returns, which takes as long as thousands of calls in Python.  ``get`` is for work that is
    apart.  It computes once; errors are raised, and it is tried again next time."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._lock = fork_safe_locks.make()
        self._results: list[T] = []
        self._is_over: list[bool] = []  # one item as soon as the background is done with it, or failed
        self._is_begun = uninterruptible.once(self._begin)

    def get(self) -> T:
        with self._lock:
            if not self._results:
                self._results.append(self._compute())
            return self._results[0]

    def is_ready(self) -> bool:
        """Whether it is to be had without waiting, or whoever asks for it is to wait; else it is being made."""
        return bool(self._is_over) or flags.NATIVE_AFTER.value == 0 or not self._is_begun()

    def _begin(self) -> bool:
        """False where there is no background thread."""
        from hybridflow.runtime import background  # only where there were enough calls

        return background.begin(self._run, is_needed=True)

    def _run(self) -> None:
        try:
            self.get()
        finally:
            self._is_over.append(True)  # who comes next meets the error, if there is one


def is_kept(describe: Callable[[bool], tuple[object, tuple[object, ...], tuple[str, ...]]]) -> bool:
    """Whether the store on disk has a module.  ``describe`` says, with or without checks, what decides the text of the
    module, and its symbols."""
    if object_layout.problem() is not None:
        return False
    try:
        _, settings, symbols = describe(bool(flags.VERIFY.value))
    except (AttributeError, OSError, TypeError):  # as in ``entry._enabled``, which says so
        return False
    return native_functions.is_kept(settings, symbols)


def load(
    build: Callable[[], str], settings: Iterable[object], symbols: tuple[str, ...], imports: dict[str, int]
) -> dict[str, int]:
    """As ``native_functions.load``, for what may be compiled in the background.  The result has the addresses of better
    code as soon as there is some: variables of the module have moved then."""
    from hybridflow.runtime import background

    key = native_functions.key_of(settings, symbols)
    if (
        native_functions.is_kept(settings, symbols) or not background.is_behind() or flags.VERIFY.value
    ):  # code that counts has its counts in one place
        return native_functions.load(build, settings, symbols, imports)
    text = native_functions.text_of(build)
    functions = [symbol for symbol in symbols if re.search(rf'^define [^@]*@"{symbol}"\(', text, re.MULTILINE)]
    words = {symbol: _words(text, symbol) for symbol in symbols if symbol not in functions}
    places = tuple(_PLACE.format(symbol) for symbol in functions)

    def quickly() -> bytes:
        return native_functions.compiled(_passing_on(text, functions), machine_code.QUICK)

    first = native_functions.link(None, quickly, (*symbols, *places), imports).addresses
    result = {symbol: first[symbol] for symbol in symbols}

    def improve() -> None:
        try:
            replace()
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")
            raise

    def replace() -> None:
        better = native_functions.link(key, lambda: native_functions.compiled(text), symbols, imports).addresses
        with _moving:
            result.update(better)
            for symbol, count in words.items():
                before, now = ((ctypes.c_uint64 * count).from_address(a[symbol]) for a in (first, better))
                for k, word in enumerate(before):
                    now[k] = now[k] or word  # what was set meanwhile was set here
            for symbol, place in zip(functions, places):
                ctypes.c_uint64.from_address(first[place]).value = better[symbol]

    background.begin(improve)
    return result


failures: list[str] = []  # why modules have no better code, where it could not be made
_moving = fork_safe_locks.make()  # held while variables move, and while one is set


def set_word(addresses: Mapping[str, int], symbol: str, number: int, value: int) -> None:
    """Set a word of a variable, wherever that lies by now."""
    with _moving:
        ctypes.c_uint64.from_address(addresses[symbol] + WORD * number).value = value


_PLACE = "{}.better"  # the variable that says where a function's better code is, 0 while there is none
_PASSED_ON = """
@"{place}" = global ptr null
define {result} @"{name}"({parameters}) nounwind {{
  %better = load atomic ptr, ptr @"{place}" acquire, align 8
  %is_none = icmp eq ptr %better, null
  br i1 %is_none, label %here, label %there
here:
  %first = musttail call {result} @"{name}.first"({parameters})
  ret {first}
there:
  %second = musttail call {result} %better({parameters})
  ret {second}
}}
"""


def _passing_on(text: str, functions: Iterable[str]) -> str:
    """The text of a module whose functions do what they did while their places are 0, and pass calls on after that."""
    added = []
    for name in functions:
        match = re.search(rf'^define (\S+) @"{name}"\((.*)\)', text, re.MULTILINE)
        assert match is not None, name
        result, parameters = match.groups()
        text = f'{text[: match.start()]}define {result} @"{name}.first"({text[match.start(2) :]}'
        first, second = ("void", "void") if result == "void" else (f"{result} %first", f"{result} %second")
        named = {"place": _PLACE.format(name), "name": name, "result": result, "parameters": parameters}
        call = _PASSED_ON.format(first=first, second=second, **named)
        if result == "void":
            call = call.replace("%first = ", "").replace("%second = ", "")
        added.append(call)
    return "".join([text, *added])


def _words(text: str, variable: str) -> int:
    """How many words of 64 bits a variable has."""
    match = re.search(rf'^@"{variable}" = global (?:\[(\d+) x )?(?:ptr|i64)\b', text, re.MULTILINE)
    assert match is not None, variable
    return int(match[1] or 1)
