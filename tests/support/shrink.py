"""Cutting a failing program down: whatever can go while it fails in the same way goes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.support.programs import Body, Program, Settings, Statement

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, seconds: float = 60.0) -> Program:
    """The smallest program found that still fails; one step at a time, each tried on what the last one left."""
    end = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in candidates(program):
            if time.monotonic() > end:
                return program
            if smaller.main.results and smaller != program and fails(smaller):
                program, progress = smaller, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the boldest first.  Some make no sense; those raise the same error compiled and not."""
    yield from _fewer_calls(program)
    yield from _fewer_results(program)
    yield from _plainer(program)
    for body in (program.main, *program.helpers):
        for statement in reversed(body.statements):
            yield program.without([statement])
        for statement in body.statements:
            yield from _bypassed(program, body, statement)
    yield from _fewer_tapes(program)
    yield from _smaller_arrays(program)


def _fewer_calls(program: Program) -> Iterator[Program]:
    for k in range(len(program.calls)) if len(program.calls) > 1 else ():
        yield replace(program, calls=program.calls[:k] + program.calls[k + 1 :])


def _fewer_results(program: Program) -> Iterator[Program]:
    results = program.main.results
    for result in results if len(results) > 1 else ():
        yield _unused_left_out(replace(program, main=replace(program.main, results=(result,))))
    for k in range(len(results)) if len(results) > 1 else ():
        yield replace(program, main=replace(program.main, results=results[:k] + results[k + 1 :])).tidy()


def _unused_left_out(program: Program) -> Program:
    """Without statements that only make values that nobody uses."""
    while True:
        used = program.main.uses
        dead = [s for s in program.main.statements if s.makes and not s.makes & used]
        if not dead:
            return program
        program = program.without(dead)


def _plainer(program: Program) -> Iterator[Program]:
    settings = program.settings
    yield replace(program, settings=Settings())
    for field, default in Settings()._asdict().items():
        yield replace(program, settings=settings._replace(**{field: default}))
    if settings.tapes > 1:
        yield replace(program, settings=settings._replace(tapes=1))
    for limit in settings.limits:
        left = tuple(other for other in settings.limits if other != limit)
        yield replace(program, settings=settings._replace(limits=left))
    for k in range(len(program.open)):
        yield replace(program, open=program.open[:k] + program.open[k + 1 :])


def _bypassed(program: Program, body: Body, statement: Statement) -> Iterator[Program]:
    """What a statement makes replaced by what it is made of."""
    if len(statement.makes) != 1:
        return
    (made,) = statement.makes
    for source in sorted(statement.uses):
        if source[0] in "ft":
            continue

        def renamed(text: str, made: str = made, source: str = source) -> str:
            return re.sub(rf"\b{made}\b", source, text)

        statements = tuple(replace(s, text=renamed(s.text)) for s in body.statements if s is not statement)
        changed = replace(body, statements=statements, results=tuple(map(renamed, body.results)))
        yield _with_body(program, body, changed).tidy()


def _with_body(program: Program, old: Body, new: Body) -> Program:
    if old is program.main:
        return replace(program, main=new)
    return replace(program, helpers=tuple(new if helper is old else helper for helper in program.helpers))


def _fewer_tapes(program: Program) -> Iterator[Program]:
    for body in (program.main, *program.helpers):
        for tape in sorted({name for s in body.statements for name in s.inside}):
            left = [
                replace(s, inside=tuple(name for name in s.inside if name != tape))
                for s in body.statements
                if not re.search(rf"\b{tape}\b", s.text)
            ]
            yield _with_body(program, body, replace(body, statements=tuple(left))).without([])


def _smaller_arrays(program: Program) -> Iterator[Program]:
    """Plain values for edge values; one element less wherever an extent occurs."""
    for row, values in enumerate(program.calls):
        for k, value in enumerate(values):
            if value.kind == "edges":
                changed = (*values[:k], replace(value, kind="plain"), *values[k + 1 :])
                yield replace(program, calls=(*program.calls[:row], changed, *program.calls[row + 1 :]))
    arrays = [*(v for row in program.calls for v in row), *program.variables.values(), *program.captured.values()]
    if any(v.kind == "given" for v in arrays) or program.open:
        return
    for extent in sorted({n for v in arrays for n in v.shape if n > 1}, reverse=True):
        for smaller in (2, extent // 2, extent - 1):
            if smaller < extent:
                yield _with_extent(program, extent, smaller)


def _with_extent(program: Program, extent: int, smaller: int) -> Program:
    def shape(given: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(smaller if n == extent else n for n in given)

    def all_of(values: dict) -> dict:
        return {
            name: replace(v, shape=shape(v.shape), bound=smaller if v.bound == extent else v.bound)
            for name, v in values.items()
        }

    calls = tuple(tuple(all_of(dict(enumerate(row))).values()) for row in program.calls)
    return replace(program, calls=calls, variables=all_of(program.variables), captured=all_of(program.captured))
