"""A sample of the cases of each test, which a seed draws, for runs that have little time: ``--sample N``.

A plugin of pytest.  All tests run, but for half of those with the mark ``slow``, which is drawn.  One that has more
than ``N`` sets of parameters runs with at least ``N`` of them and a sixteenth of the others.  Of a parameter whose
values come again, four times on average, each value is among them: each operation where there are cases of operations
and dtypes.  Another seed draws others, and so does another version of Python: a case is left out of many runs in a row
by chance alone.  A test that looks at one name or file of the package in each case has the mark ``every_case``, and
runs whole.  Where cases take long, or are very many, the mark ``sample(n, part)`` says other numbers.

``--part K/N`` leaves the others of N parts to other versions of Python: the seed deals out the tests that depend on the
interpreter, slow ones among them, and each is in one part.  Tests of code are left whole, and so are those that are to
run on every Python.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import pytest

_PART = 16  # of the cases beyond the first ones, one of so many is taken
_AGAIN = 4  # cases that a value has on average, if each value is to be there
_PLAIN = (str, bytes, int, float, bool, type, type(None))

_Case = TypeVar("_Case")


def drawn(
    cases: list[_Case], number: int, key: str, values: Callable[[_Case], set[Hashable]], part: int = _PART
) -> list[_Case]:
    """Some of the cases, in their order: all where there are no more than ``number``.  ``key`` decides which ones, and
    ``values`` gives what is to be there at least once."""
    if len(cases) <= number:
        return cases
    order = sorted(range(len(cases)), key=lambda k: hashlib.blake2b(f"{key} {k}".encode()).digest())
    missing = set().union(*map(values, cases))
    taken: set[int] = set()
    for k in order:
        if not missing.isdisjoint(values(cases[k])):
            missing -= values(cases[k])
            taken.add(k)
    wanted = number + (len(cases) - number) // part
    for k in order:
        if len(taken) >= wanted:
            break
        taken.add(k)
    return [cases[k] for k in sorted(taken)]


def shared_values(calls: list[Any], number: int) -> Callable[[Any], set[Hashable]]:
    """What is to be there of a case: its values of those parameters that have few."""

    def all_of(call: Any) -> dict[str, Hashable]:
        return {
            name: (type(value), repr(value)) if isinstance(value, _PLAIN) else id(value)  # zeros have signs
            for name, value in call.params.items()
        }

    of_calls = {id(call): all_of(call) for call in calls}
    by_name: dict[str, set[Hashable]] = {}
    for found in of_calls.values():
        for name, value in found.items():
            by_name.setdefault(name, set()).add(value)
    few = {name for name, different in by_name.items() if len(different) <= max(number, len(calls) // _AGAIN)}
    return lambda call: {(name, value) for name, value in of_calls[id(call)].items() if name in few}


def _key(config: pytest.Config, nodeid: str) -> str:
    return f"{config.option.order_seed} {sys.version_info[1]} {nodeid}"


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """``some(cases, n)`` of a test that goes through cases by itself: all of them, in a sample ``n`` and a sixteenth of
    the others.  ``values`` as in ``drawn``."""

    def of(cases: Iterable[Any], number: int, values: Callable[[Any], set[Hashable]] = lambda case: set()) -> list[Any]:
        whole = not request.config.option.sample
        return list(cases) if whole else drawn([*cases], number, _key(request.config, request.node.nodeid), values)

    return of


def has_its_turn(key: str) -> bool:
    """Half of what is slow."""
    return hashlib.blake2b(f"{key} slow".encode()).digest()[0] % 2 == 0


def is_in_part(seed: int, test: str, part: str) -> bool:
    """Whether a test belongs to the part ``K/N``."""
    number, count = map(int, part.split("/"))
    return int.from_bytes(hashlib.blake2b(f"{seed} part {test}".encode()).digest()[:8]) % count == number - 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def runs(item: pytest.Item) -> bool:
        marks = {mark.name for mark in item.iter_markers()}
        if config.option.part and marks.isdisjoint(("code", "every_python")):
            return is_in_part(config.option.order_seed, item.nodeid, config.option.part)
        return not config.option.sample or "slow" not in marks or has_its_turn(_key(config, item.nodeid))

    left = [item for item in items if not runs(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Before there are tests of them: what is left out costs next to nothing."""
    yield
    number = metafunc.config.option.sample
    calls: list[Any] = metafunc._calls
    mark = metafunc.definition.get_closest_marker("sample")
    part = _PART
    if number and mark is not None:
        most, part = mark.args if len(mark.args) == 2 else (*mark.args, _PART)
        number = min(number, most)
    if number and len(calls) > number and metafunc.definition.get_closest_marker("every_case") is None:
        key = _key(metafunc.config, metafunc.definition.nodeid)
        calls[:] = drawn(calls, number, key, shared_values(calls, number), part)
