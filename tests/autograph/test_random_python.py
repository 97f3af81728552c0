"""Random programs of ordinary Python have the same bits compiled as eagerly; ``python -m
tests.support.random_python`` runs thousands."""

from __future__ import annotations

import linecache

import pytest

from hybridflow.errors import HybridflowError
from tests.support import random_python
from tests.support.fuzz import fast_compiler

pytestmark = pytest.mark.code


@pytest.fixture(autouse=True)
def _texts():
    before = set(linecache.cache)
    yield
    for name in set(linecache.cache) - before:
        linecache.cache.pop(name, None)


@pytest.mark.runs_eagerly  # what is refused otherwise
@pytest.mark.parametrize("seed", [2, 9, 12, 15, 33, 135, 141, 300])
@pytest.mark.sample(1)  # one takes 20 s
def test_random_programs(seed: int) -> None:
    with fast_compiler():
        found = random_python.difference(seed)
    assert found is None or isinstance(found, HybridflowError), found
