"""Options of the test run, and the settings that every test runs under."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from hybridflow import flags
from hybridflow.eager import quick
from hybridflow.jit import function as compiled
from hybridflow.jit.guards import report
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.op_calls import ElementwiseOp
from hybridflow.runtime.native import layout
from tests.left_behind import Net

# The same examples in every run, however long they take.  ``--hypothesis-profile default`` looks for new ones.
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("same")

_net = Net()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """A test fails that leaves a block open, a thread, or another setting: the next one would meet it."""
    _net.begin()
    report.told.clear()
    yield
    left = _net.left()
    assert not left, "left behind: " + "; ".join(left)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what passes make into the golden files")
    parser.addoption("--fuzz", type=int, default=200, metavar="N", help="number of random programs (default 200)")
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="S", help="seed of the first random program")


# Modules about what the compiler and the runtime make, and about what operations and errors mean: none of that depends
# on the interpreter, and it is enough to run them on one.  Those of code for GPUs (``test_cuda_...``) are of this kind.
# Whatever has to do with Python's objects, frames, source, threads or processes runs on all; and so do the examples of
# all public functions (``test_docs``), for whatever else an interpreter may break.
_OF_CODE = frozenset(
    [
        "test_added_losses",
        "test_architectures",
        "test_array_functions",
        "test_array_libraries",
        "test_array_standard",
        "test_attention",
        "test_autodiff",
        "test_bad_input",
        "test_batching",
        "test_benchmarks",
        "test_bits",
        "test_checkpoint",
        "test_cli",
        "test_compat_datasets",
        "test_compat_tf",
        "test_control",
        "test_control_flow",
        "test_control_gradients",
        "test_conventions",
        "test_convolution",
        "test_ctc",
        "test_data_files",
        "test_decided_numbers",
        "test_devices",
        "test_distributions",
        "test_division",
        "test_effects_of_derivatives",
        "test_elementary",
        "test_emitter",
        "test_examples",
        "test_extent_algebra",
        "test_extents",
        "test_extents_as_numbers",
        "test_extreme_positions",
        "test_first_positions",
        "test_folds",
        "test_for_loops",
        "test_forward",
        "test_functional",
        "test_further_layers",
        "test_fusion",
        "test_fuzz",
        "test_golden",
        "test_golden_programs",
        "test_gpu",
        "test_gpu_sharing",
        "test_gradient_matrix",
        "test_guarded_reads",
        "test_higher_derivatives",
        "test_histograms",
        "test_index",
        "test_indexed_slices",
        "test_indexing",
        "test_inlined_effects",
        "test_ir_text",
        "test_ir_text_damaged",
        "test_keras_layers",
        "test_kernels",
        "test_lanes_apart",
        "test_large_graphs",
        "test_late_gradients",
        "test_layer",
        "test_layers",
        "test_lighting",
        "test_limits",
        "test_linalg",
        "test_losses",
        "test_machine_code",
        "test_masked_stores",
        "test_metrics",
        "test_mixed_precision",
        "test_model_parts",
        "test_models",
        "test_moving",
        "test_names",
        "test_nn",
        "test_numerics",
        "test_operands",
        "test_ops_table",
        "test_optimizers",
        "test_order",
        "test_padded_reads",
        "test_panels",
        "test_parts",
        "test_passes",
        "test_phases",
        "test_pieces",
        "test_powers",
        "test_prefetch_to_device",
        "test_products",
        "test_quantiles",
        "test_quotients",
        "test_raising_in_programs",
        "test_random",
        "test_random_control",
        "test_random_python",
        "test_recompute",
        "test_recurrent",
        "test_replayed_gradients",
        "test_row_updates",
        "test_saved",
        "test_saved_datasets",
        "test_saved_models",
        "test_scaled_attention",
        "test_scatter_operands",
        "test_schedule",
        "test_segments",
        "test_selection",
        "test_setitem",
        "test_several_devices",
        "test_several_results",
        "test_shapeless_results",
        "test_shared_loops",
        "test_shared_memory",
        "test_small_matrices",
        "test_small_programs",
        "test_special_kernels",
        "test_summary",
        "test_templates",
        "test_tensor_shapes",
        "test_tf1",
        "test_tf1_arguments",
        "test_tf1_printed",
        "test_tf_programs",
        "test_transformations",
        "test_types",
        "test_variable_gradients",
        "test_varying_sizes",
        "test_verify",
        "test_views",
        "test_vmap",
        "test_waves",
        "test_weak_scalars",
        "test_weights",
        "test_wholes",
        "test_window_layers",
        "test_word_pairs",
    ]
)


BATCH = 20  # random programs of a test, so that a run of many is still a short list


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("--fuzz-seed"), metafunc.config.getoption("--fuzz")
        starts = range(first, first + count, BATCH)
        batches = [range(start, min(start + BATCH, first + count)) for start in starts]
        metafunc.parametrize("seeds", batches, ids=[f"{b.start}-{b.stop - 1}" for b in batches])


def _is_of_code(module: str) -> bool:
    return module in _OF_CODE or module.startswith("test_cuda_")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of which no test is asked for are not even imported."""
    return True if config.option.markexpr == "not code" and _is_of_code(collection_path.stem) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_of_code(item.path.stem):
            item.add_marker(pytest.mark.code)


def pytest_configure(config: pytest.Config) -> None:
    """Every test holds graphs against the rules after every pass, and counts the references of native calls."""
    flags.VERIFY.value = 1  # before the first call loads native code
    ElementwiseOp.WANTED = 1  # so that the second use of an operator is a native one


@pytest.fixture(scope="session")
def native() -> dict[str, int]:
    """Addresses in the native code, which counts references; skips where the interpreter is laid out otherwise."""
    if layout.problem() is not None:
        pytest.skip(layout.problem())
    addresses = entry.enable()
    assert addresses is not None and "owned_references" in addresses, entry.problem()
    return addresses


@pytest.fixture(params=["native", "python"])
def operators(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Runs a test twice: with operators answered by native code as soon as it can, and all in Python."""
    monkeypatch.setattr(quick, "_uses_left", math.inf)  # it stays as the test begins
    if request.param == "native" and not quick.make_native():
        pytest.skip(entry.problem())
    if request.param == "python":
        quick.make_python()
    yield request.param
    quick.make_python()


class Traced:
    """The keys that functions were traced for, each trace lasting ``seconds`` longer."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.seconds = 0.0


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    """Counts traces without touching what is traced, whose effects would be repeated at each call."""
    trace, made = compiled.trace_signature, Traced()

    def counting(python: Any, binder: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
        made.keys.append(key)
        time.sleep(made.seconds)
        return trace(python, binder, key, *args, **kwargs)

    monkeypatch.setattr(compiled, "trace_signature", counting)
    return made
