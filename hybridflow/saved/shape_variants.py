"""Programs for the extents that a trace is not for: the other sides of what it assumed.

A trace with open extents is for calls in which its conditions hold (``x[:10]`` of ten rows or more).  Its function
answers the others by other traces.  A file has those that can be found: for each condition an extent is sought at which
it does not hold, and the function is traced for that.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, affine, symbols, value_at
from hybridflow.compiler.ir.types import Shape
from hybridflow.jit.cache_key import Key, TensorKey
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.tensor_spec import TensorSpec

_MOST = 16  # programs for one signature
_BETWEEN = 16  # between extents that are to differ
_REMAINDERS = 4  # that are tried for one extent
_STEPS = 32  # extents that are tried for one condition
_FAILURES = 2  # of them that may raise, until no others are tried
_TYPICAL = 1 << 20  # what a symbol is where no call says it, of few symbols
_ALL = 40  # bits of what all symbols are together: arrays of such shapes are to be countable
_FAR = 1 << 16  # times what it is in a call


def shape_variants(concrete: ConcreteFunction) -> Iterator[ConcreteFunction]:
    """Concrete functions of the same function for extents that one is not for, as far as there are any."""
    seen = [concrete]
    for shapes in _different(concrete):
        for variant in _tried(concrete, [shapes], seen):
            seen.append(variant)
            yield variant
    for candidates in _small_where_tied(concrete):
        for variant in _tried(concrete, candidates, seen):
            seen.append(variant)
            yield variant
    for one in seen:  # which grows
        for variant in _tried(one, _with_remainders(one), seen):
            seen.append(variant)
            yield variant
        for shapes in _of_small_symbols(one):
            for variant in _tried(one, [shapes], seen):
                seen.append(variant)
                yield variant
        for condition in one.conditions:
            if isinstance(condition, Dim):
                for variant in _tried(one, _violating(one, condition), seen):
                    seen.append(variant)
                    yield variant


def _tried(
    one: ConcreteFunction, candidates: Iterable[Sequence[Shape]], seen: Sequence[ConcreteFunction]
) -> Iterator[ConcreteFunction]:
    """What answers calls with arguments of these shapes, where none that is ``seen`` does."""
    failures = 0
    for shapes in candidates:
        if len(seen) >= _MOST or failures == _FAILURES or one.specialise is None:
            return
        leaves = _arguments(one, shapes)
        if leaves is None or any(other.fits(leaves) for other in seen):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                specialised = one.specialise(leaves, one.key)
        except Exception:  # the user's code, which may raise whatever it likes for such an extent
            failures += 1
            continue
        specialised.specialise = one.specialise
        yield specialised


def small_variants(concrete: ConcreteFunction, key: Key) -> Iterator[ConcreteFunction]:
    """What answers calls of a key with small extents.  Where one trace does not for all of the open ones, it is of
    extents for which what follows from them is small too: as ``x[1:]`` is beside no elements of ``y`` in ``x[1:] + y``.
    """
    assert concrete.specialise is not None
    leaves = _leaves(concrete, key, None)
    seen: list[ConcreteFunction] = []
    try:
        general = concrete.specialise(leaves, key)
    except Exception:  # there is no program for such an extent, as there is no maximum of nothing
        pass
    else:
        wanted = [leaf.shape for leaf in key.leaves if isinstance(leaf, TensorKey)]
        pairs = [pair for shapes in zip(wanted, _inputs(general)) for pair in zip(*shapes)]
        numbers = [extent for asked, extent in pairs if isinstance(extent, int) and not isinstance(asked, int)]
        if all(number >= LEAST for number in numbers):  # or no call has such an extent
            seen.append(general)
            yield general
        if not numbers:
            return
    if not any(isinstance(leaf, TensorKey) and leaf.is_open for leaf in key.leaves):
        return
    for size in range(LEAST, LEAST + _REMAINDERS):
        leaves = _leaves(concrete, key, size)
        if any(other.fits(leaves) for other in seen):
            continue
        try:
            seen.append(concrete.specialise(leaves, key))
        except Exception:  # the user's code, which may raise whatever it likes
            continue
        yield seen[-1]


def _leaves(concrete: ConcreteFunction, key: Key, size: int | None) -> list[Any]:
    """Arguments of a key: TensorSpecs, or arrays that have a ``size`` for open extents.  Raises KeyError where nobody
    can say what else is given."""
    leaves: list[Any] = []
    for place, leaf in enumerate(key.leaves):
        if not isinstance(leaf, TensorKey):
            leaves.append(concrete.known.plain(place))
        elif size is None:
            leaves.append(TensorSpec(leaf.shape, leaf.dtype))
        else:
            shape = [extent if isinstance(extent, int) else size for extent in leaf.shape]
            leaves.append(np.broadcast_to(np.zeros((), leaf.dtype), shape))
    return leaves


def _inputs(concrete: ConcreteFunction) -> list[Shape]:
    """The shapes of the tensor arguments, as they were traced."""
    return [node.type.shape for node in concrete.graph.arguments]


def _different(concrete: ConcreteFunction) -> Iterator[list[Shape]]:
    """Shapes whose open extents differ where a trace took some to be equal or known: those that it knows are less, all
    by one or each by another number, as they are where the code takes as many rows of a table as there are; then all
    differ, rising and falling."""
    extents = _open_extents(concrete)
    numbers = {name: extent for name, extent in extents.items() if isinstance(extent, int)}
    if len(set(extents.values())) == len(extents) and not numbers:
        return
    if numbers:
        names = sorted({name for extent in extents.values() for name in symbols(extent)})
        sizes = dict(zip(names, itertools.count(_BETWEEN, _BETWEEN)))
        kept = {name: value_at(extent, sizes) for name, extent in extents.items()}
        yield _shapes_of(concrete, kept | {name: number - 1 for name, number in numbers.items()})
        if len(numbers) > 1:
            for lower, number in numbers.items():
                yield _shapes_of(concrete, kept | {lower: number - 1})
            yield _shapes_of(concrete, kept | {name: n - k for k, (name, n) in enumerate(numbers.items(), 1)})
    for order in (1, -1):
        yield _shapes_of(concrete, dict(zip(list(extents)[::order], itertools.count(_BETWEEN, _BETWEEN))))


def _small_where_tied(concrete: ConcreteFunction) -> Iterator[Iterator[list[Shape]]]:
    """Shapes with one small open extent, for each where a trace took one to follow from another, as in ``x[1:] + y``:
    a part of 1 fits all others."""
    extents = _open_extents(concrete)
    names = [symbols(extent) for extent in extents.values()]
    tied = {name for extent, here in zip(extents.values(), names) for name in here if str(extent) != name}
    tied = {name for name in tied if sum(name in here for here in names) > 1}
    for small, extent in extents.items():
        if not tied.isdisjoint(symbols(extent)):
            sizes = dict(zip(extents, itertools.count(_BETWEEN, _BETWEEN)))
            yield (_shapes_of(concrete, {**sizes, small: size}) for size in range(LEAST, LEAST + _REMAINDERS))


def _of_small_symbols(concrete: ConcreteFunction) -> Iterator[list[Shape]]:
    """Shapes for which a symbol is 0 or 1 whose multiples, or what is a number more, are extents of arguments."""
    inputs = _inputs(concrete)
    sizes = {name: _BETWEEN + k for k, name in enumerate(sorted({n for s in inputs for e in s for n in symbols(e)}))}
    lines = [line for line in map(affine, (e for shape in inputs for e in shape)) if line is not None]
    for name in dict.fromkeys(name for name, scale, offset in lines if (scale, offset) != (1, 0)):
        for size in range(LEAST):
            here = {**sizes, name: size}
            yield [tuple(value_at(extent, here) for extent in shape) for shape in inputs]


def _open_extents(concrete: ConcreteFunction) -> dict[Any, Extent]:
    """What a trace has for each open extent of its signature."""
    return {
        name: extent
        for names, shape in zip(_names(concrete), _inputs(concrete))
        for name, extent in zip(names, shape)
        if name is not None
    }


def _shapes_of(concrete: ConcreteFunction, sizes: dict[Any, int]) -> list[Shape]:
    """The shapes of the arguments whose open extents have these sizes."""
    pairs = zip(_names(concrete), _wanted(concrete))
    return [tuple(e if n is None else sizes[n] for n, e in zip(names, shape)) for names, shape in pairs]


def _wanted(concrete: ConcreteFunction) -> list[Any]:
    return [key.shape for key in concrete.key.leaves if isinstance(key, TensorKey)]


def _names(concrete: ConcreteFunction) -> list[list[Any]]:
    return [[_name(e, k, axis) for axis, e in enumerate(shape)] for k, shape in enumerate(_wanted(concrete))]


def _name(extent: object, leaf: int, axis: int) -> Any:
    """What tells an open extent from others; None for a number."""
    return None if isinstance(extent, int) else extent if isinstance(extent, str) else (leaf, axis)


def _with_remainders(concrete: ConcreteFunction) -> Iterator[list[Shape]]:
    """Shapes with extents that a number does not divide, one after the other, where a trace took them to be multiples
    of it, as pooling pads odd extents alone; not beside axes without elements, which hardly occur."""
    inputs = _inputs(concrete)
    if any(0 in shape for shape in inputs):
        return
    names = sorted({name for shape in inputs for extent in shape for name in symbols(extent)})
    sizes = {name: _BETWEEN + k for k, name in enumerate(names)}
    for extent in dict.fromkeys(extent for shape in inputs for extent in shape):
        _, scale, _ = affine(extent) or ("", 1, 0)
        for rest in range(1, min(scale, _REMAINDERS + 1)):
            yield [tuple(value_at(e, sizes) + (rest if e == extent else 0) for e in shape) for shape in inputs]


def _violating(concrete: ConcreteFunction, condition: Dim) -> Iterator[list[Shape]]:
    """Shapes with which a condition is negative: a symbol is moved over the edge, and on; where that is beyond reach
    for each of several alone, beside small others."""
    inputs = _inputs(concrete)
    examples = concrete.staged.trace.assumptions.examples or {}
    names = {name for shape in inputs for extent in shape for name in symbols(extent)}.union(symbols(condition))
    typical = min(_TYPICAL, 1 << _ALL // len(names))
    start = {name: examples.get(name, typical + k) for k, name in enumerate(sorted(names))}
    moves = list(_moves(condition, start))
    if not moves and len(symbols(condition)) > 1:
        small = dict.fromkeys(symbols(condition), LEAST)
        moves = [move for name in small for move in _moves(condition, {**start, **small, name: start[name]}, [name])]
    for sizes in moves:
        yield [tuple(value_at(extent, sizes) for extent in shape) for shape in inputs]


def _moves(condition: Dim, start: dict[str, int], names: Iterable[str] | None = None) -> Iterator[dict[str, int]]:
    """What symbols are when a condition is negative and one of ``names``, by default all that it has, is another than
    at the start."""
    for name in symbols(condition) if names is None else names:

        def fails(size: int) -> bool:
            try:
                return value_at(condition, {**start, name: size}) < 0  # noqa: B023  # it is called here alone
            except ZeroDivisionError:  # where no call asks it, as the code has raised before
                return False

        for size in range(start[name] + 1, start[name] + 1 + _REMAINDERS):  # of what depends on a remainder
            if fails(size):
                yield {**start, name: size}
        for far, step in ((LEAST, -1), (start[name] * _FAR, 1)):
            if not fails(far):
                continue
            holds = start[name]
            while abs(far - holds) > 1:
                middle = (far + holds) // 2
                far, holds = (middle, holds) if fails(middle) else (far, middle)
            for size in range(far, far + step * _STEPS, step):
                if size >= LEAST and fails(size):
                    yield {**start, name: size}


def _arguments(concrete: ConcreteFunction, shapes: Sequence[Shape]) -> list[Any] | None:
    """Arguments of these shapes, which take no memory; None where there can be none."""
    leaves: list[Any] = []
    left = iter(shapes)
    for position, key in enumerate(concrete.key.leaves):
        try:
            if isinstance(key, TensorKey):
                shape: Any = next(left)
                if any(n < LEAST and not isinstance(wanted, int) for n, wanted in zip(shape, key.shape)):
                    return None
                leaves.append(np.broadcast_to(np.zeros((), key.dtype), shape))
            else:
                leaves.append(concrete.known.plain(position))
        except (KeyError, ValueError):
            return None
    return leaves
