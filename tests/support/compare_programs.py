"""Whether a program does the same with ``hf.function`` and without: values, gradients, errors, the variables after
them, and values that were held before the call."""

from __future__ import annotations

import contextlib
import linecache
import runpy
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler import target
from hybridflow.compiler.loops import access_analysis, fusion, materialization
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tier_up import BACKWARD_PASSES
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor
from hybridflow.runtime.machine import host_target
from hybridflow.runtime.memory import memory_pool
from tests.support.bits import same_bits
from tests.support.phase_host import small_pieces
from tests.support.programs import Program, Settings, Values
from tests.support.teams import threads

# The limits of fusion: any numbers give the same results.
LIMITS: dict[str, types.ModuleType] = {
    "MAX_MEMBERS": fusion,
    "MAX_WORK": fusion,
    "MAX_REDUCTIONS": fusion,
    "RECENT": fusion,
    "CHEAP": materialization,
    "MAX_DEPTH": materialization,
    "MAX_MOVED": materialization,
    "MAX_RECOMPUTED": materialization,
    "MAX_DIVISIONS": access_analysis,
    "MAX_VIEWS": access_analysis,
}
FILE = "<program>"  # where errors say that they arose
CACHES = ("l2", "l3")  # of the machine, in bytes: what fits into them decides likewise
TARGETS = ("sse2", "avx2", "avx512")
MOST_THREADS = 3

Make = Callable[[Any], tuple[Callable[..., Any], list[hf.Variable]]]


def op(name: str, *inputs: Any, **attrs: Any) -> hf.Tensor:
    """An op of the table, which the array functions may not offer in this form."""
    return apply(TABLE[name], *(as_tensor(x, name) for x in inputs), **attrs)


def eagerly(python: Any = None, **options: Any) -> Any:
    """Stands for ``hf.function`` and does nothing."""
    return eagerly if python is None else python


class Outcome(NamedTuple):
    """What a call did.  ``values`` are results, then gradients; ``state`` the variables afterwards."""

    values: list[np.ndarray | None]
    error: tuple[str, ...] | None  # type, line, message
    state: list[np.ndarray]
    changed: str  # what was held before the call, and is another now


class Difference(NamedTuple):
    kind: str  # value, dtype, error, state, held
    text: str


def load(program: Program) -> dict[str, Any]:
    """The namespace of the program's text, run as a module.

    The text is kept as that of a file would be, or what the program reads could not be watched, and each call would be
    traced anew: nothing would run from the cache, or natively.
    """
    namespace: dict[str, Any] = {"__name__": "random_program"}
    text = program.text()
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    exec(compile(text, FILE, "exec"), namespace)
    return namespace


def difference(program: Program) -> Difference | None:
    """The first difference, or None.  Runs the program's own text."""
    namespace = load(program)
    return compare(namespace["make"], namespace["calls"], program.settings, program.exact)


def main(path: str) -> None:
    """Compare the program of a module, and print what each of the two does."""
    module = runpy.run_path(path, run_name="program")
    found = compare(module["make"], module["calls"], module["settings"], module["exact"], print)
    print("no difference" if found is None else f"{found.kind}: {found.text}")


def compare(
    make: Make,
    calls: Sequence[Sequence[Values]],
    settings: Settings,
    exact: bool = True,
    report: Callable[..., None] | None = None,
) -> Difference | None:
    """The first difference between calls of what ``make`` makes.

    ``exact``: messages of errors count.  Where extents are open they name symbols, and a position may be found wrong by
    another op, later.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* was donated, but no result")
        eager, compiled = _Runner(make, eagerly, settings), _Runner(make, hf.function, settings)
        for number, row in enumerate(calls):
            with gradients_replayed(settings.replayed):
                expected = eager.call(row)
            with applied(settings, number):
                found = compiled.call(row)
            if report is not None:
                report(f"call {number}\n  eager    {expected}\n  compiled {found}")
            if any(outcome.error and outcome.error[0] == "GradientError" for outcome in (expected, found)):
                plain = settings._replace(tapes=0, forward=False)  # an op of it has no such derivative
                return compare(make, calls, plain, exact, report)
            different = _difference(expected, found, exact)
            if different is not None and different.kind == "error" and compiled.cannot_trace(row, expected, found):
                different = None
            if different is not None:
                return Difference(different.kind, f"call {number}: {different.text}")
    return None


@contextlib.contextmanager
def gradients_replayed(on: bool) -> Iterator[None]:
    """Eager gradients are compiled from the first on, or never."""
    before = BACKWARD_PASSES.threshold
    BACKWARD_PASSES.threshold = 1 if on else 1 << 60
    try:
        yield
    finally:
        BACKWARD_PASSES.threshold = before


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Memory that programs get is full of NaN, so that what is read before it is written shows."""
    pool = memory_pool.pool()
    if pool is None:
        yield
        return
    pool.set_poison(True)
    try:
        yield
    finally:
        pool.set_poison(bool(flags.POISON.value))


@contextlib.contextmanager
def applied(settings: Settings, number: int = 0) -> Iterator[None]:
    """What the settings say of the ``number``-th call."""
    with contextlib.ExitStack() as stack:
        if settings.threads:
            stack.enter_context(small_pieces())
            stack.enter_context(threads(1 + (settings.threads - 1 + number) % MOST_THREADS))
        if settings.poisoned:
            stack.enter_context(poisoned())
        stack.enter_context(_compiled_so(settings))
        yield


@contextlib.contextmanager
def _compiled_so(settings: Settings) -> Iterator[None]:
    before = {name: getattr(module, name) for name, module in LIMITS.items()}
    limits = dict(settings.limits)
    machine = target.NAMED[settings.target] if settings.target else host_target.target()
    machine = machine if host_target.can_run(machine) else host_target.target()
    machine = machine.with_(**{name: limits.pop(name) for name in CACHES if name in limits})
    with flags.SKIP(settings.skip), flags.SCHEDULE(settings.schedule), host_target.use(machine):
        try:
            for name, value in limits.items():
                setattr(LIMITS[name], name, value)
            hf.config.run_functions_eagerly(settings.eagerly)
            yield
        finally:
            hf.config.run_functions_eagerly(False)
            for name, value in before.items():
                setattr(LIMITS[name], name, value)


class _Runner:
    def __init__(self, make: Make, function: Any, settings: Settings) -> None:
        self.settings = settings
        self.restores = function is eagerly  # a call of an hf.function that raises changes no variable
        try:
            self.program, self.variables = make(function)
        except Exception as error:
            raise AssertionError("the program does not even begin") from error
        self.held: list[tuple[str, Any, np.ndarray]] = []

    def call(self, row: Sequence[Values]) -> Outcome:
        arguments = self.arguments(row)
        copies = [np.array(x) for x in arguments]
        before = [v.value() for v in self.variables] if self.restores or self.settings.held else []
        if self.settings.held:
            self.hold("an earlier value of a variable", before)
        values: list[np.ndarray | None] = []
        error = None
        try:
            results = self.results(arguments)
            values = [None if x is None else np.array(x) for x in results]
            if self.settings.held:
                self.hold("an earlier result", [x for x in results if isinstance(x, hf.Tensor)])
            del results
        except Exception as raised:
            error = _told(raised)
            if self.restores:
                for variable, tensor in zip(self.variables, before):
                    variable.assign(tensor)
        del before
        changed = [what for what, x, copy in self.held if not same_bits(np.asarray(x), copy)]
        gives_up = self.settings.donated and not self.restores
        if not gives_up and not all(map(same_bits, map(np.asarray, arguments), copies)):
            changed.append("an argument")
        state = [np.array(v.numpy()) for v in self.variables]
        return Outcome(values, error, state, ", ".join(dict.fromkeys(changed)))

    def arguments(self, row: Sequence[Values]) -> list[Any]:
        """Tensors, or arrays for compiled functions that are to make tensors of them; some of them one object."""
        arrays = [values.array() for values in row]
        settings = self.settings
        if settings.numpy and not (self.restores or settings.tapes or settings.shared or settings.eagerly):
            return arrays
        found: list[Any] = []
        for values, array in zip(row, arrays):
            others = found[:] if self.settings.shared else []
            others += [v.value() for v in self.variables] if self.settings.shared == 2 else []
            alike = [x for x in others if (x.dtype, x.shape) == (array.dtype, array.shape)]
            found.append(alike[0] if alike and values.kind in ("plain", "edges") else hf.asarray(array))
        return found

    def cannot_trace(self, row: Sequence[Values], expected: Outcome, found: Outcome) -> bool:
        """Whether the function raises the error that it should not while it is traced: then it never runs, and what
        would be wrong with its arguments' values before is not met."""
        if expected.error is None or expected.error[0] not in ("IndexRangeError", "DivisionError"):
            return False
        try:
            self.program.get_concrete_function(*(hf.asarray(values.array()) for values in row))  # type: ignore[attr-defined]
        except Exception as error:
            return found.error is not None and _told(error) == found.error
        return False

    def hold(self, what: str, tensors: Sequence[Any]) -> None:
        self.held += [(what, x, np.array(x)) for x in tensors]

    def results(self, arguments: list[Any]) -> list[Any]:
        """The results of one call, then first or second derivatives with respect to float arguments and variables, or
        the tangents of the results."""
        if self.settings.forward:
            return self.with_tangents(arguments)
        if not self.settings.tapes:
            return _flat(self.program(*arguments))
        sources = [x for x in [*arguments, *self.variables] if _is_float(x)]
        watched = [x for x in sources if isinstance(x, hf.Tensor)]
        with hf.GradientTape() as outer:
            outer.watch(watched)
            if self.settings.tapes == 1:
                outputs = _flat(self.program(*arguments))
                targets = list(filter(_is_float, outputs))
            else:
                with hf.GradientTape() as inner:
                    inner.watch(watched)
                    outputs = _flat(self.program(*arguments))
                    losses = [hf.sum(hf.sin(x)) for x in filter(_is_float, outputs)]
                first = inner.gradient(losses, sources) if losses and sources else []
                targets = [hf.sum(g * g) for g in first if g is not None]
                outputs += first
        return outputs + (outer.gradient(targets, sources) if targets and sources else [])

    def with_tangents(self, arguments: list[Any]) -> list[Any]:
        sources = [x for x in [*arguments, *self.variables] if _is_float(x)]
        moved = [hf.asarray(np.full(x.shape, 0.5 + 0.25 * k, x.dtype)) for k, x in enumerate(sources)]
        with hf.ForwardAccumulator(sources, moved) as accumulator:
            outputs = _flat(self.program(*arguments))
        return outputs + [accumulator.jvp(y) if _is_float(y) else None for y in outputs]


def _told(error: Exception) -> tuple[str, str, str]:
    """An error's type, place and message.  A place outside of the program is one of this module's, such as the line
    where a derivative is asked for, which differs between the two."""
    where, text = getattr(error, "where", ""), str(error)
    if not where or where.startswith(FILE):
        return type(error).__name__, where, text
    return type(error).__name__, "", text.removesuffix(f"  ({Path(where).name})")


def _flat(result: Any) -> list[Any]:
    found = list(result) if isinstance(result, tuple) else [result]
    return [x.value() if isinstance(x, hf.Variable) else x for x in found]


def _is_float(x: Any) -> bool:
    return x is not None and hf.isdtype(x.dtype, "real floating")


def _difference(expected: Outcome, found: Outcome, exact: bool) -> Difference | None:
    parts = 3 if exact else 2
    if (expected.error and expected.error[:parts]) != (found.error and found.error[:parts]):
        return Difference("error", f"eager {expected.error}, compiled {found.error}")
    for k, (a, b) in enumerate(zip(expected.values, found.values, strict=True)):
        if a is None or b is None:
            if a is not b:
                return Difference("value", f"result {k}: eager {a!r}, compiled {b!r}")
        elif (a.dtype, a.shape) != (b.dtype, b.shape):
            return Difference("type", f"result {k}: eager {a.dtype}{a.shape}, compiled {b.dtype}{b.shape}")
        elif not same_bits(a, b):
            return Difference("value", f"result {k}:\n{_apart(a, b)}")
    for k, (a, b) in enumerate(zip(expected.state, found.state, strict=True)):
        if not same_bits(a, b):
            return Difference("state", f"variable V{k} (error {expected.error}):\n{_apart(a, b)}")
    if found.changed:
        return Difference("held", f"changed: {found.changed}")
    return None


def _apart(a: np.ndarray, b: np.ndarray) -> str:
    """Where two arrays differ: the first places, with both values."""
    places = [at for at in np.ndindex(a.shape) if not same_bits(a[at], b[at])]
    lines = [f"  {tuple(map(int, at))}: eager {a[at]!r}, compiled {b[at]!r}" for at in places[:4]]
    return "\n".join([f"  {len(places)} of {a.size} elements of {a.dtype}{list(a.shape)}", *lines])
