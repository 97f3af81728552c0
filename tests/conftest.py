"""Options of the test run, and the settings that every test runs under."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hybridflow import flags


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what passes make into the golden files")
    parser.addoption("--fuzz", type=int, default=200, metavar="N", help="number of random programs (default 200)")
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="S", help="seed of the first random program")


@pytest.fixture(autouse=True, scope="session")
def verify_after_every_pass() -> Iterator[None]:
    with flags.VERIFY(1):
        yield
