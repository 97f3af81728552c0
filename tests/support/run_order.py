"""The order of tests, which a seed decides: modules among each other, and tests within a module.

A plugin of pytest.  No test may depend on what ran before it, so that each run has another order; ``--order-seed N``
repeats one.  What is left out does not change the order of the rest, and all workers find the same, though every other
one collects from the end: byte code of tests is made by the first that comes to them, and the others read it.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

_SHOWN = 3  # tests that ran before one that fails, in its report
_before: deque[str] = deque(maxlen=_SHOWN + 1)


def _place(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode()).digest()


def pytest_configure(config: pytest.Config) -> None:
    if config.option.order_seed is None:
        told = getattr(config, "workerinput", {})
        config.option.order_seed = told.get("order_seed", random.SystemRandom().randrange(1 << 28))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers follow the process that starts them."""
    node.workerinput["order_seed"] = node.config.option.order_seed


def pytest_sessionstart(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
    if int(worker.removeprefix("gw")) % 2:
        session.config.args = reversed_arguments(session.config.args, session.config.invocation_params.dir)


def reversed_arguments(arguments: list[str], folder: Path) -> list[str]:
    """The folders and files of tests in these arguments, the last ones first."""
    found = []
    for argument in arguments:
        path = folder / argument
        inside = sorted(path.iterdir()) if path.is_dir() else []
        files = [each for each in inside if each.match("test_*.py") or any(each.rglob("test_*.py"))]
        found += [str(each) for each in files] or [argument]
    return found[::-1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers begin far from each other in the order, and take from each other in the end: modules stay together, and
    with them what their tests share."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of tests: --order-seed {config.option.order_seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """First of all, since pytest then brings together the tests that share a parameter of a fixture."""
    seed = config.option.order_seed
    items.sort(key=lambda item: (_place(seed, item.path.stem), _place(seed, item.name)))


def pytest_runtest_logstart(nodeid: str) -> None:
    _before.append(nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """One that fails says what ran before it."""
    report = yield
    if report.failed:
        worker = getattr(item.config, "workerinput", {}).get("workerid", "main")
        lines = [f"--order-seed {item.config.option.order_seed}, in {worker}, after", *list(_before)[:-1]]
        report.sections.append(("order", "\n".join(lines)))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    terminalreporter.write_line(pytest_report_header(config))
