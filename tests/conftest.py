"""Options of the test run, and the settings that every test runs under."""

from __future__ import annotations

import pytest

from hybridflow import flags


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what passes make into the golden files")
    parser.addoption("--fuzz", type=int, default=200, metavar="N", help="number of random programs (default 200)")
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="S", help="seed of the first random program")


def pytest_configure(config: pytest.Config) -> None:
    """Every test holds graphs against the rules after every pass, and counts the references of native calls."""
    flags.VERIFY.value = 1  # before the first call loads native code
