"""Runs small programs whose functions read, and write, what lies outside of them: eagerly, traced, and in other ways.

A program is plain text (``tests/data/guard_programs``).  It makes state, decorates a function with ``traced``, calls it
through ``call``, changes the state, calls again.  The same text runs once per way, each time on state of its own, and
what it ``show``s, what its calls gave and what its ``outside`` state was after each call is a log; logs are compared.

Names that a program finds: ``hf``, ``np``, ``x`` (a tensor of three), and of its ``Lab``: ``traced``, ``call`` (two
calls, so that a native path is warm), ``once``, ``show``, ``outside``, ``output``, ``module``, ``rewrite``.
"""

from __future__ import annotations

import ast
import code
import collections
import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import io
import logging
import marshal
import os
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.autograph.source import source_locations
from hybridflow.eager import public_op, taped_calls
from hybridflow.errors import HybridflowError
from hybridflow.tracing.trace import Trace
from tests.support.paths import DATA

PROGRAMS = DATA / "guard_programs"
FLAGS = {
    "cached",  # plain, common code: a call after which nothing changed makes no trace, and no warning is given
    "effect",  # writes to the outside: repeated at each call, or refused with an error that names a line "# effect"
    "same",  # nothing outside changes what it gives: results depend on the arguments alone
    "module",  # needs a module of its own: not for the REPL, where all programs share one
    "branches",  # a tensor decides which statements run: an error where the text of the function is not known
}


@dataclasses.dataclass(frozen=True)
class Probe:
    """One program: the file that it stands in is its ``kind``."""

    kind: str
    name: str
    flags: frozenset[str]
    text: str

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.name}"

    def effect_lines(self) -> list[int]:
        return [number for number, line in enumerate(self.text.splitlines(), 1) if "# effect" in line]


def read_probes() -> list[Probe]:
    """All programs: ``== name flag flag`` starts each, its text follows."""
    found = []
    for path in sorted(PROGRAMS.glob("*.txt")):
        for block in path.read_text().split("\n== ")[1:]:
            head, _, text = block.partition("\n")
            name, *flags = head.split()
            unknown = set(flags) - FLAGS
            assert not unknown, f"{path.name}: {name} has flags {sorted(unknown)}"
            found.append(Probe(path.stem, name, frozenset(flags), text.strip("\n") + "\n"))
    names = [probe.id for probe in found]
    assert len(names) == len(set(names)), [name for name, n in collections.Counter(names).items() if n > 1]
    return found


# Values as logs hold them


def canonical(value: Any) -> Any:
    """The value as nested tuples of plain Python values: types, bits and order count, identity does not."""
    if isinstance(value, hf.Variable):
        return ("variable", canonical(value.value()))
    if isinstance(value, hf.Tensor):
        try:
            return ("tensor", *_array(value.numpy()))
        except HybridflowError:
            return ("a tensor of a trace, which has no value",)
    if isinstance(value, np.ndarray):
        return (
            ("objects", *map(canonical, value.ravel().tolist())) if value.dtype.hasobject else ("array", *_array(value))
        )
    if isinstance(value, np.generic):
        return ("scalar", *_array(np.asarray(value)))
    name = type(value).__name__
    if isinstance(value, dict):
        return (name, *((canonical(k), canonical(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return (name, *sorted(map(repr, map(canonical, value))))
    if isinstance(value, list | tuple | collections.deque):
        return (name, *map(canonical, value))
    if isinstance(value, types.SimpleNamespace):
        return (name, canonical(vars(value)))
    assert type(value).__repr__ is not object.__repr__, f"a program shows a {name}, which has no value to compare"
    return (name, repr(value))


def _array(array: np.ndarray) -> tuple[Any, ...]:
    return str(array.dtype), array.shape, array.tobytes()


def canonical_error(error: BaseException) -> Any:
    """The error's type and message; hybridflow's own messages name places, which differ."""
    name = type(error).__name__
    if isinstance(error, HybridflowError):
        return "raised", name
    return "raised", name, re.sub(r"\b(guard_program|__main__)\.", "", str(error))


# Ways to run a function


class Stale:
    """What must not be: remembers its first outcome for each form of its arguments, and computes nothing again."""

    def __init__(self, python: Callable[..., Any]) -> None:
        self.python, self.results = python, {}
        functools.update_wrapper(self, python, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = tuple(map(_form, args)), tuple((name, _form(value)) for name, value in kwargs.items())
        if key not in self.results:
            try:
                self.results[key] = self.python(*args, **kwargs), None
            except (Exception, KeyboardInterrupt) as error:
                self.results[key] = None, error
        result, error = self.results[key]
        if error is not None:
            raise error
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def _form(value: Any) -> Any:
    if isinstance(value, hf.Tensor | np.ndarray):
        return str(value.dtype), tuple(value.shape)
    if isinstance(value, dict):
        return tuple(sorted(value))
    return (type(value), value) if isinstance(value, int | float | str) else type(value)


WAYS: dict[str, Callable[..., Any]] = {"eager": lambda python: python, "graph": hf.function, "stale": Stale}


@dataclasses.dataclass
class Outcome:
    """What a run gave.  ``complaints`` are what was wrong beside values; a refused run ends with the refusal."""

    log: list[Any] = dataclasses.field(default_factory=list)
    complaints: list[str] = dataclasses.field(default_factory=list)
    refused: bool = False


class Lab(Outcome):
    """One run of one program, in one way."""

    def __init__(self, probe: Probe, way: str, folder: pathlib.Path | None = None) -> None:
        super().__init__()
        self.probe, self.way, self.folder = probe, way, folder
        self._outside: list[Callable[[], Any]] = []
        self._printed = io.StringIO()
        self.traces = 0

    # What programs call

    def traced(self, python: Callable[..., Any]) -> Any:
        return WAYS[self.way](python)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Two calls: the second one finds native paths warm."""
        self.once(function, *args, **kwargs)
        before = self.traces
        self.once(function, *args, **kwargs)
        if "cached" in self.probe.flags and self.traces != before:
            self.complaints.append("a second call, after which nothing had changed, was traced again")

    def once(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if self.refused:
            return
        before = self._states()
        try:
            self.log.append(canonical(function(*args, **kwargs)))
        except HybridflowError as error:
            if self.way == "graph" and "effect" in self.probe.flags:
                self._refuse(error, before, lambda: function(*args, **kwargs))
                return
            self.log.append(canonical_error(error))
        except (Exception, KeyboardInterrupt) as error:
            self.log.append(canonical_error(error))
        if self._outside:
            self.log.append(("outside", *self._states()))

    def show(self, value: Any) -> None:
        if not self.refused:
            self.log.append(canonical(value))

    def outside(self, read: Callable[[], Any]) -> None:
        """State that is compared after each call from here on, and that a refused call must leave alone."""
        self._outside.append(read)

    def output(self) -> str:
        return self._printed.getvalue()

    def module(self, name: str, text: str) -> types.ModuleType:
        """A module beside the program, imported afresh."""
        sys.modules.pop(name, None)
        self.rewrite(name, text)
        return importlib.import_module(name)

    def rewrite(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    # The rest

    def names(self) -> dict[str, Any]:
        """What the program finds under the names that it does not make."""
        own = ("traced", "call", "once", "show", "outside", "output", "module", "rewrite")
        return {"hf": hf, "np": np, "x": hf.asarray([1.0, 2.0, 3.0])} | {name: getattr(self, name) for name in own}

    def _states(self) -> list[Any]:
        return [canonical(read()) for read in self._outside]

    def _refuse(self, error: HybridflowError, before: list[Any], again: Callable[[], Any]) -> None:
        """An effect was refused: with its line, with nothing done, and not for the first call only."""
        self.refused = True
        where, _, line = str(error.where).rpartition(":")
        lines = self.probe.effect_lines()
        if not where or not line.isdigit() or f":{line}" not in str(error):
            self.complaints.append(f"the refusal names no line: {error}")
        elif self.folder is not None and where.endswith(("guard_program.py", "<string>")) and int(line) not in lines:
            self.complaints.append(f"the refusal names line {line}, the effect is in {lines}: {error}")
        if self._states() != before:
            self.complaints.append(f"refused, but outside it is {self._states()} and was {before}: {error}")
        try:
            again()
        except HybridflowError:
            pass
        else:
            self.complaints.append("the first call was refused, the second was not")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Counts traces and collects warnings and output while the program runs."""
        make, warned = Trace.__init__, Warnings()

        def count(trace: Trace, *args: Any, **kwargs: Any) -> None:
            # Public functions that are compiled as a whole do not count, nor do traces inside of traces.
            if type(trace) is Trace:
                self.traces += not (public_op._planning._is_owned() or taped_calls._making._is_owned())
            make(trace, *args, **kwargs)

        # Traces inside of traces run it too, where code of the user's would be noticed.
        count.__code__ = count.__code__.replace(co_filename=make.__code__.co_filename)
        logger = logging.getLogger("hybridflow")
        logger.addHandler(warned)
        Trace.__init__ = count  # type: ignore[method-assign]
        try:
            with contextlib.redirect_stdout(self._printed):
                yield
        finally:
            Trace.__init__ = make  # type: ignore[method-assign]
            logger.removeHandler(warned)
        unexpected = [message for message in warned.messages if not _SAYS_WHAT_CHANGES.search(message)]
        if "cached" in self.probe.flags and unexpected:
            self.complaints.append(f"warned: {unexpected}")


_SAYS_WHAT_CHANGES = re.compile(r"traced again \d+ times because")  # it was, programs change things


class Warnings(logging.Handler):
    """Keeps the messages of a logger."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


# Places that a program may come from


def run_text(lab: Lab, folder: pathlib.Path) -> None:
    """By ``exec`` of a string."""
    text = lab.probe.text  # where decorators look for it
    exec(compile(text, "<string>", "exec", dont_inherit=True), lab.names() | {"__name__": "guard_program"})


def run_byte_code(lab: Lab, folder: pathlib.Path) -> None:
    """As byte code alone, as it is installed without sources, or sent from another machine."""
    data = marshal.dumps(compile(lab.probe.text, "/nowhere/guard_program.py", "exec", dont_inherit=True))
    exec(marshal.loads(data), lab.names() | {"__name__": "guard_program"})


def run_module(lab: Lab, folder: pathlib.Path) -> None:
    """As a module that is imported from a file."""
    name = "guard_program"
    sys.modules.pop(name, None)
    (folder / f"{name}.py").write_text(lab.probe.text)
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    vars(module).update(lab.names())
    sys.modules[name] = module
    spec.loader.exec_module(module)


def run_console(lab: Lab, folder: pathlib.Path) -> None:
    """Typed into an ``InteractiveConsole``."""
    source_locations.listen()  # as hybridflow does where it is imported by what is typed
    console = code.InteractiveConsole(lab.names() | {"__name__": "guard_program"}, "<console>")
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        for line in typed(lab.probe.text).splitlines():
            console.push(line)
    if errors.getvalue():
        raise RuntimeError(errors.getvalue())


def typed(text: str) -> str:
    """The program as one types it: a statement at a time, no empty line within one, and one after a block."""
    lines, result = text.splitlines(), []
    for node in ast.parse(text).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        statement = [line for line in lines[first - 1 : node.end_lineno] if line.strip()]
        result += statement + [""] * (hasattr(node, "body") or len(statement) > 1)
    return "\n".join(result) + "\n"


PLACES: dict[str, Callable[[Lab, pathlib.Path], None]] = {
    "folder": run_module,
    "site-packages": run_module,
    "exec": run_text,
    "byte code": run_byte_code,
    "console": run_console,
}


def run(probe: Probe, way: str, place: str, folder: pathlib.Path) -> Lab:
    """The program, run in this way from this place; ``folder`` is an empty one, the program's own."""
    if place == "site-packages":
        folder = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        folder.mkdir(parents=True)
    lab = Lab(probe, way, folder)
    modules, path, no_files, here = set(sys.modules), list(sys.path), sys.dont_write_bytecode, os.getcwd()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        with lab.running():
            PLACES[place](lab, folder)
    except Exception as error:  # also after a refusal: a program goes on then, though its calls do nothing
        raise RuntimeError(f"{probe.id} as {way} from {place} broke down after {len(lab.log)} entries") from error
    finally:
        os.chdir(here)
        sys.path[:] = path
        sys.dont_write_bytecode = no_files
        for name in set(sys.modules) - modules:
            if name.startswith(("guard_program", "probe_")):
                del sys.modules[name]
    return lab


def difference(eager: Outcome, other: Outcome) -> str | None:
    """What differs, in words; None if the other run is right."""
    problems = list(other.complaints)
    if not other.refused and len(eager.log) != len(other.log):
        problems.append(f"{len(eager.log)} entries eagerly, {len(other.log)} now")
    for at, (want, got) in enumerate(zip(eager.log, other.log)):
        if want != got:
            problems.append(f"entry {at}: {readable(got)}, eagerly {readable(want)}")
    return "\n".join(problems) or None


_HOLD_BITS = ("tensor", "array", "scalar")


def readable(entry: Any) -> str:
    if isinstance(entry, tuple) and len(entry) == 4 and entry[0] in _HOLD_BITS and entry[1] in np.sctypeDict:
        return f"{entry[0]} {entry[1]} {np.frombuffer(entry[3], entry[1]).reshape(entry[2]).tolist()}"
    if isinstance(entry, tuple):
        return f"({', '.join(map(readable, entry))})"
    return repr(entry)
