"""Samples of cases: what ``--sample N`` takes of the cases of a test, and what it never leaves out."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.case_samples import drawn, has_its_turn, is_in_part, shared_values

pytestmark = pytest.mark.code

OPS, DTYPES, ZEROS = [f"op{k}" for k in range(40)], [object() for _ in range(5)], [0, 0.0, -0.0]


def calls(*params: dict[str, Any]) -> list[Any]:
    """As pytest makes them of ``parametrize``."""
    return [types.SimpleNamespace(params=p) for p in params]


PAIRS = calls(*({"op": op, "dtype": dtype} for op in OPS for dtype in DTYPES))
LONE = calls(*({"program": object()} for _ in range(100)))


def sample(cases: list[Any], number: int, key: str) -> list[Any]:
    return drawn(cases, number, key, shared_values(cases, number))


def test_few_cases_run_whole() -> None:
    assert sample(LONE[:12], 12, "a") == LONE[:12]


@pytest.mark.parametrize("cases", [PAIRS, LONE])
def test_the_same_key_draws_the_same_in_order(cases: list[Any]) -> None:
    found = sample(cases, 12, "a")
    assert found == sample(cases, 12, "a") != sample(cases, 12, "b")
    places = [cases.index(case) for case in found]
    assert places == sorted(set(places))


def test_the_number_of_cases() -> None:
    assert len(sample(LONE, 12, "a")) == 12 + 88 // 16


@pytest.mark.parametrize("key", "abc")
def test_each_value_that_cases_share_is_there(key: str) -> None:
    found = sample(PAIRS, 12, key)
    assert {case.params["op"] for case in found} == set(OPS)
    assert {case.params["dtype"] for case in found} == set(DTYPES)
    assert len(found) < 60


def test_zeros_of_each_sign_and_type() -> None:
    found = sample(calls(*({"zero": zero, "k": k} for zero in ZEROS for k in range(40))), 1, "a")
    assert {repr(case.params["zero"]) for case in found} == {"0", "0.0", "-0.0"}


def test_all_cases_have_their_turn() -> None:
    seen = {id(case) for key in range(150) for case in sample(LONE, 12, str(key))}
    assert len(seen) == len(LONE)


def test_cases_that_one_test_goes_through(some: Callable[..., list[Any]], pytestconfig: pytest.Config) -> None:
    found = some(range(100), 12)
    assert found == some(range(100), 12)
    assert len(found) == (12 + 88 // 16 if pytestconfig.option.sample else 100)


def test_half_of_slow_tests_have_their_turn() -> None:
    turns = [has_its_turn(f"{seed} tests/test_x.py::test_y") for seed in range(200)]
    assert 70 < sum(turns) < 130


def test_each_test_is_in_one_part_and_in_another_one_with_another_seed() -> None:
    tests = [f"tests/test_x.py::test_{k}" for k in range(200)]
    for seed in (1, 2):
        firsts, seconds = ({test for test in tests if is_in_part(seed, test, part)} for part in ("1/2", "2/2"))
        assert firsts | seconds == set(tests) and not firsts & seconds and 70 < len(firsts) < 130
    assert firsts != {test for test in tests if is_in_part(1, test, "1/2")}
    assert all(is_in_part(1, test, "1/1") for test in tests)
