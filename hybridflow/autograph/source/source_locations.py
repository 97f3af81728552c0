"""Where the text of a program may still be found: files, loaders, command lines, consoles, strings given to `exec`.

Nothing here is believed: `source` accepts a text only if it compiles to the byte code in question.
"""

from __future__ import annotations

import io
import linecache
import os
import re
import stat
import sys
import tokenize
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

from hybridflow import flags

MAX_CACHED_TEXTS = 64
MAX_CACHED_CHARACTERS = 4 << 20
_FRAMES = 64  # callers that are searched for the string they gave to exec
_cached: deque[tuple[str, str]] = deque(maxlen=MAX_CACHED_TEXTS)  # (file name, text), oldest first


def is_synthetic_name(filename: str) -> bool:
    """Whether code of this name was compiled from a string: `<stdin>`, `<string>`, `<console>`."""
    return filename.startswith("<")


def keep(filename: str, text: str) -> None:
    """Hold on to a text that exists nowhere else, while it is among the newest 64 and the newest 4 MB.

    Takes no lock, as it also runs inside audit hooks, thus within signal handlers.
    """
    if len(text) > MAX_CACHED_CHARACTERS or (filename, text) in _cached:
        return
    _cached.append((filename, text))
    with suppress(IndexError, RuntimeError):  # another thread took the last, or appended meanwhile
        while sum(len(text) for _, text in _cached) > MAX_CACHED_CHARACTERS:
            _cached.popleft()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Keep the strings that are compiled under made-up names and hold a function; they vanish once they are code."""
    if event != "compile" or flags.KEEP_TEXT.value == "0":
        return
    with suppress(Exception):  # the program that compiles must not notice
        text, filename = arguments
        filename = os.fsdecode(filename)
        if not is_synthetic_name(filename) or filename == "<unknown>":  # the name that `ast.parse` gives
            return
        if isinstance(text, bytes):
            text = decode(text)
        if isinstance(text, str) and ("def " in text or "lambda" in text):
            keep(filename, text)


def listen() -> None:
    """Keep the text of what is compiled from strings from now on, unless the user said not to.

    The hook stays for the rest of the process, and slows what Python audits, such as reading ``function.__code__``.
    """
    global _is_listening
    if not _is_listening and flags.KEEP_TEXT.value != "0":
        _is_listening = True
        sys.addaudithook(_audit)


_is_listening = False


def is_console() -> bool:
    """Whether somebody types the program: into Python's prompt, or another one that is made of ``code``."""
    return hasattr(sys, "ps1") or (
        "code" in sys.modules
        and any(frame.f_code.co_name == "runcode" and frame.f_globals.get("__name__") == "code" for frame in _callers())
    )


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def decode(data: bytes) -> str:
    """A program's bytes as text, by its byte order mark or coding line.  Raises SyntaxError or UnicodeDecodeError."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def lines_of(text: str) -> list[str]:
    """Lines as the compiler counts them (`str.splitlines` also ends them at form feeds)."""
    return io.StringIO(text, newline=None).readlines()


def candidates(code: CodeType, names: dict[str, Any]) -> Iterator[list[str]]:
    """Texts, as lists of lines, that may hold the function `code`, likeliest first.  `names` are its globals."""
    filename = code.co_filename
    lines = linecache.getlines(filename, names)  # files, zip archives, doctests, notebooks, the console of 3.13
    if lines:
        yield lines
    if not is_synthetic_name(filename):
        yield from _files(filename, names, lines)
        return
    for name, text in reversed(tuple(_cached)):
        if name == filename:
            yield lines_of(text)
    if filename == "<string>":
        command = command_text(sys.orig_argv)
        if command is not None:
            yield lines_of(command)
    if filename == "<stdin>":
        program = _standard_input()
        if program is not None:
            yield lines_of(program)
        yield from _history()


def _files(filename: str, names: dict[str, Any], known: list[str]) -> Iterator[list[str]]:
    """The file as it is now, under the names that it may have, and what its loader says."""
    seen = known
    paths = [filename]
    if isinstance(path := names.get("__file__"), str) and os.path.basename(path) == os.path.basename(filename):
        paths.append(path)  # the code's own may be relative to a folder that was left
    for path in paths:
        with suppress(OSError, SyntaxError, UnicodeDecodeError):
            with tokenize.open(path) as file:
                lines = file.readlines()
            if lines != seen:
                seen = lines
                yield lines
    get_source = getattr(names.get("__loader__"), "get_source", None)
    if get_source is not None:
        with suppress(Exception):  # a loader is anybody's code
            text = get_source(names.get("__name__"))
            if isinstance(text, str) and (lines := lines_of(text)) != seen:
                yield lines


def command_text(arguments: list[str]) -> str | None:
    """The program after `-c` on Python's command line, also behind other flags (`-sc`, `-Ic…`); None without one."""
    rest = iter(arguments[1:])
    for argument in rest:
        if not argument.startswith("-") or argument in ("-", "--"):
            return None
        if argument.startswith("--"):
            if argument == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for place, letter in enumerate(argument[1:], 2):
            if letter == "c":
                return argument[place:] or next(rest, None)
            if letter == "m":
                return None
            if letter in "WX":
                if place == len(argument):
                    next(rest, None)
                break
    return None


def _standard_input() -> str | None:
    """The program of `python < file`: read at offset 0, which leaves the file where the interpreter has it."""
    try:
        status = os.fstat(0)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_CACHED_CHARACTERS:
            return None
        return decode(os.pread(0, status.st_size, 0))
    except (OSError, AttributeError, SyntaxError, UnicodeDecodeError):
        return None


def _history() -> Iterator[list[str]]:
    """What was typed at the console, as far as readline has it (3.11 and 3.12 keep no text themselves)."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    with suppress(Exception):  # other implementations stand in for readline
        count = readline.get_current_history_length()
        lines = [readline.get_history_item(i) or "" for i in range(max(1, count - 5000), count + 1)]
        if any("def " in line or "lambda" in line for line in lines):
            yield [line + "\n" for line in "\n".join(lines).split("\n")]  # an item may be a whole block


def of_callers(code: CodeType, frame: FrameType | None) -> Iterator[list[str]]:
    """Strings that the frames outwards hold and that may be the text of `code`: one of them was given to `exec`."""
    wanted = re.compile(r"\blambda\b" if code.co_name == "<lambda>" else rf"\bdef\s+{re.escape(code.co_name)}\b")
    seen = set()
    for _ in range(_FRAMES):
        if frame is None:
            return
        with suppress(Exception):
            values = (*frame.f_code.co_consts, *tuple(frame.f_locals.values()))
            for value in values:
                if isinstance(value, bytes) and b"\n" in value:
                    with suppress(SyntaxError, UnicodeDecodeError):
                        value = decode(value)
                if (
                    type(value) is str
                    and len(value) <= MAX_CACHED_CHARACTERS
                    and wanted.search(value)
                    and value not in seen
                ):
                    seen.add(value)
                    yield lines_of(value)
        frame = frame.f_back
