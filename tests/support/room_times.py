"""What rooms of tests take, printed at the end of a run: seconds by the clock and of CPUs, summed over all workers.

A plugin of pytest.  Processes that tests start count as theirs once they have ended.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from typing import Any

import pytest

_FEW = 10  # dearest modules
_last = 0.0  # CPU seconds when the last report was made
_clock: Counter[str] = Counter()
_cpu: Counter[str] = Counter()
_tests: Counter[str] = Counter()


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def pytest_collection_finish() -> None:
    global _last
    _last = _cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    """Workers send what they add to a report along with it."""
    global _last
    report = yield
    report.cpu_seconds = 0.0
    if report.when == "teardown":
        now = _cpu_seconds()
        report.cpu_seconds, _last = now - _last, now
    return report


def pytest_runtest_logreport(report: Any) -> None:
    module = report.nodeid.partition("::")[0]
    _clock[module] += report.duration
    _cpu[module] += getattr(report, "cpu_seconds", 0.0)  # a worker that died sends none
    _tests[module] += report.when == "call"


def _room(module: str) -> str:
    return os.path.dirname(module).removeprefix("tests/")


def _by_room(modules: Counter[str]) -> Counter[str]:
    rooms: Counter[str] = Counter()
    for module, amount in modules.items():
        rooms[_room(module)] += amount
    return rooms


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if sum(_clock.values()) < 20:
        return
    rooms = _by_room(_clock), _by_room(_cpu), _by_room(_tests)
    terminalreporter.section("seconds of rooms, and of the dearest modules, over all workers: clock, CPU, tests")
    for clock, cpu, tests in (rooms, (_clock, _cpu, _tests)):
        for name, seconds in clock.most_common(None if clock is rooms[0] else _FEW):
            terminalreporter.write_line(f"{seconds:8.1f} {cpu[name]:8.1f} {tests[name]:6}  {name}")
