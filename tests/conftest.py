"""Options of the test run, and the settings that every test runs under."""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from hybridflow import flags
from hybridflow.core.context import dialect
from hybridflow.eager import fast_path
from hybridflow.jit import guard_report, tracer
from hybridflow.runtime import background
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.op_calls import ElementwiseOp
from hybridflow.runtime.native import object_layout
from tests.support import avx512_machine, case_samples, left_behind, room_times, run_order

# The same examples in every run, however long they take.  ``--hypothesis-profile default`` looks for new ones.
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("same")
# They would depend on the constants of all modules that happen to be imported, which take long to read.
with contextlib.suppress(ImportError, AttributeError):  # versions that have no such constants
    from hypothesis.internal.conjecture import providers

    constants = providers._local_constants
    providers._get_local_constants = lambda: constants  # type: ignore[assignment]


def pytest_collectreport() -> None:
    """A module that imports TensorFlow's names leaves the next ones' tensors as they are."""
    dialect.is_tensorflow = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Words, shapes and dtypes are TensorFlow's in the tests of its names alone, whatever was imported before."""
    dialect.is_tensorflow = "compat" in item.path.parts and "hybridflow.compat.tf" in sys.modules


_net = left_behind.Net()
_TESTS = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """A test fails that leaves a block open, a thread, or another setting: the next one would meet it."""
    _net.begin()
    guard_report.reported.clear()
    yield
    background.wait()
    left = _net.left()
    assert not left, "left behind: " + "; ".join(left)


@pytest.fixture(autouse=True, scope="module")
def nothing_patched() -> Iterator[None]:
    """The last test of a module fails where one of them left another function, class or constant in the package."""
    left_behind.freeze()  # what other modules left in caches
    yield
    found = _net.patched()
    assert not found, "left behind by a test of this module: " + "; ".join(found)


@pytest.fixture(autouse=True)
def programs_are_compiled(
    nothing_left_behind: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A test fails whose compiled functions run eagerly, as Python would have to know what a tensor decides: it would
    compare eager code with itself.  Those with the mark ``runs_eagerly`` are about that."""
    told: list[str] = []
    tell = guard_report.warn_runs_eagerly

    def tell_eager(name: str, reason: Any, error: BaseException) -> None:
        if reason is None:
            told.append(f"{name} runs eagerly: {error}")
        tell(name, reason, error)

    monkeypatch.setattr(guard_report, "warn_runs_eagerly", tell_eager)
    yield
    assert not told or request.node.get_closest_marker("runs_eagerly") is not None, told[0]


@pytest.fixture(autouse=True)
def code_as_users_have_it(
    nothing_left_behind: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For tests with the mark ``usual_level``: the level of code generation that is the default elsewhere."""
    if request.node.get_closest_marker("usual_level") is not None:
        monkeypatch.setattr(flags.OPT, "value", "2")
        monkeypatch.setenv("HF_OPT", "2")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what passes make into the golden files")
    parser.addoption(
        "--order-seed", type=int, metavar="N", help="repeat the order of a run; -1 is the order of the files"
    )
    parser.addoption(
        "--sample",
        type=int,
        default=0,
        metavar="N",
        help="of a test with more than N cases, N and a sixteenth of the others, as the order decides (default: all)",
    )
    parser.addoption(
        "--part",
        default="",
        metavar="K/N",
        help="of tests that depend on the interpreter, the K-th of N parts, which the order deals out (default: all)",
    )
    parser.addoption("--fuzz", type=int, default=120, metavar="N", help="number of random programs (default 120)")
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="S", help="seed of the first random program")


# Rooms about what the compiler makes, and about what operations and errors mean: none of that depends on the
# interpreter, and it is enough to run them on one.  Whatever has to do with Python's objects, frames, source, threads
# or processes may run on all; and so may the examples of all public functions (``test_docs``), for whatever else an
# interpreter may break.  A module that is of another kind than its room says so: ``pytestmark = pytest.mark.code``, or
# ``pytest.mark.every_python``.
_ROOMS_OF_CODE = frozenset(
    ["compat", "compiler", "gpu", "layers", "losses", "mapping", "metrics", "models", "nn", "optimizers", "summary"]
)
_MARK = re.compile(
    r"^pytestmark = .*\bmark\.(code|every_python)\b|^    pytest\.mark\.(code|every_python),$", re.MULTILINE
)


@functools.cache
def _is_of_code(module: Path) -> bool:
    """Read, not imported: whoever leaves these modules out does not wait for them."""
    found = _MARK.search(module.read_text(encoding="utf-8"))
    if found is not None:
        return "code" in found.groups()
    return module.relative_to(_TESTS).parts[0] in _ROOMS_OF_CODE


BATCH = 20  # random programs of a test, so that a run of many is still a short list


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("--fuzz-seed"), metafunc.config.getoption("--fuzz")
        starts = range(first, first + count, BATCH)
        batches = [range(start, min(start + BATCH, first + count)) for start in starts]
        metafunc.parametrize("seeds", batches, ids=[f"{b.start}-{b.stop - 1}" for b in batches])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of which no test is asked for are not even imported."""
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if config.option.markexpr == "not code" and is_module and _is_of_code(collection_path) else None


QUICK = 2  # tests of each module that a quick run takes: the first ones, each of another function
_quick: dict[Path, set[str]] = {}  # their functions


def pytest_itemcollected(item: pytest.Item) -> None:
    """In the order of the files."""
    if _is_of_code(item.path):
        item.add_marker(pytest.mark.code)
    function, taken = getattr(item, "originalname", item.name), _quick.setdefault(item.path, set())
    if len(taken) < QUICK and function not in taken and item.get_closest_marker("slow") is None:
        taken.add(function)
        item.add_marker(pytest.mark.quick)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays: meanwhile there is no garbage worth looking for."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """All tests are there."""
    left_behind.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Every test holds graphs against the rules after every pass, and counts the references of native calls.

    Kernels are compiled by LLVM's fast code generator, in processes that tests start too: bits are the same.
    """
    if "HF_OPT" not in os.environ:
        os.environ["HF_OPT"] = "0"
        flags.OPT.value = "0"
    avx512_machine.install_if_asked()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as it is in what shells run behind
        signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that tests start have it, too
    config.pluginmanager.register(run_order)
    config.pluginmanager.register(case_samples)
    config.pluginmanager.register(room_times)
    # What a test leaves is young, so that looking for it does not go through all that lives (see ``left_behind``).
    gc.set_threshold(2000, 100, 10)
    flags.VERIFY.value = 1  # before the first call loads native code
    flags.NATIVE_AFTER.value = 0
    os.environ["HF_NATIVE_AFTER"] = "0"  # in other processes, too
    ElementwiseOp.WANTED = 1  # so that the second use of an operator is a native one


@pytest.fixture(scope="session")
def native() -> dict[str, int]:
    """Addresses in the native code, which counts references; skips where the interpreter is laid out otherwise."""
    if object_layout.problem() is not None:
        pytest.skip(object_layout.problem())
    addresses = entry.enable()
    assert addresses is not None and "owned_references" in addresses, entry.problem()
    return addresses


@pytest.fixture(params=["native", "python"])
def operators(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Runs a test twice: with operators answered by native code as soon as it can, and all in Python."""
    monkeypatch.setattr(fast_path, "_uses_left", math.inf)  # it stays as the test begins
    if request.param == "native" and not fast_path.make_native():
        pytest.skip(entry.problem())
    if request.param == "python":
        fast_path.make_python()
    yield request.param
    fast_path.make_python()


class Traced:
    """The keys that functions were traced for, each trace lasting ``seconds`` longer."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.seconds = 0.0


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    """Counts traces without touching what is traced, whose effects would be repeated at each call."""
    trace, made = tracer.trace_signature, Traced()

    def counting(python: Any, binder: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
        made.keys.append(key)
        time.sleep(made.seconds)
        return trace(python, binder, key, *args, **kwargs)

    monkeypatch.setattr(tracer, "trace_signature", counting)
    return made
