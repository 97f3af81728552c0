"""ONNX's own tests of operators: all of them eagerly, some compiled; with ``--sample`` some of each operator.

``expected_failures.txt`` has those that do not run, with the reason.  It may only become shorter, and what gives a
wrong result may not stand there.  ``python -m tests.onnx.test_node_suite --compiled`` runs all of them compiled.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

onnx = pytest.importorskip("onnx")

# Some operands here decide shapes, though they are values of a call: such models run eagerly.
pytestmark = [pytest.mark.code, pytest.mark.slow, pytest.mark.runs_eagerly]

LIST = Path(__file__).with_name("expected_failures.txt")
# Numbers that depend on the generator: shapes, dtypes and values that there can be are compared.
RANDOM = ("test_bernoulli", "test_training_dropout_default", "test_training_dropout_mask", "test_training_dropout")
EACH = 23  # one of so many cases is compiled as well


def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = list(collect_testcases(None))
    if find_spec("PIL") is None:  # which reads image files
        found = [case for case in found if not case.name.startswith("test_image_decoder")]
    return found


def is_random(name: str) -> bool:
    if "zero_ratio" in name:
        return False
    return name.startswith(RANDOM)


def argument(value: Any) -> Any:
    if isinstance(value, list):
        return [argument(each) for each in value]
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    strings = isinstance(value, np.ndarray) and value.dtype.kind in "OU"
    return value if value is None or strings else hf.asarray(value)


def check_same(got: Any, wanted: Any, case: Any) -> None:
    if isinstance(wanted, (list, tuple)):
        assert isinstance(got, list) and len(got) == len(wanted)
        for one, other in zip(got, wanted):
            check_same(one, other, case)
        return
    if wanted is None:
        assert got is None
        return
    if isinstance(wanted, onnx.TensorProto):
        wanted = onnx.numpy_helper.to_array(wanted)
    if isinstance(got, np.ndarray) and got.dtype.kind == "O":
        np.testing.assert_array_equal(got, np.asarray(wanted, object), strict=True)
        return
    found, wanted = got.numpy(), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if is_random(case.name):
        return
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    # Halves of 10 and bfloat16's of 7 bits: a result may be two of its units beside the expected one.
    unit = {"float16": 2.0**-9, "bfloat16": 2.0**-6}.get(found.dtype.name, 0.0)
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    least = case.atol
    if case.name.startswith("test_dft") and wanted.size:  # in float32: its rounding is that of the largest element
        least = max(least, 1e-6 * float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, wanted, rtol=max(case.rtol, unit), atol=least)


def outcome(case: Any, folder: Path, compiled: bool) -> tuple[str, str]:
    """ "ok", "wrong" or "error", and the reason."""
    path = folder / "case.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        model = hf.onnx.load(path)
        run = model if compiled else hf.eager(model)
        for inputs, outputs in case.data_sets:
            results = run(*(argument(value) for value in inputs))
            results = results if isinstance(results, tuple) else (results,)
            assert len(results) == len(outputs)
            for got, wanted in zip(results, outputs):
                check_same(got, wanted, case)
    except AssertionError as error:
        return "wrong", str(error)[:300]
    except (hf.errors.HybridflowError, NotImplementedError) as error:
        return "error", f"{type(error).__name__}: {str(error)[:300]}"
    return "ok", ""


def expected() -> set[str]:
    return {line.partition(":")[0] for line in LIST.read_text(encoding="utf-8").splitlines() if line}


def operator(case: Any) -> set[Any]:
    return {case.model.graph.node[0].op_type} if case.model.graph.node else set()


def test_operators_as_onnx_tests_them(tmp_path: Path, some: Callable[..., list[Any]]) -> None:
    every = cases()
    known, found, compiled = expected(), some(every, 12, operator), 0
    share = len(found) / len(every)
    wrong, errors, sample = [], {}, []
    for number, case in enumerate(found):
        state, reason = outcome(case, tmp_path, compiled=False)
        if state == "error":
            errors[case.name] = reason
        elif state == "wrong":
            wrong.append(f"{case.name}: {reason}")
        elif number % EACH == 0:
            sample.append(case)
    for case in sample:
        state, reason = outcome(case, tmp_path, compiled=True)
        compiled += state == "ok"
        if state == "wrong":
            wrong.append(f"{case.name}, compiled: {reason}")
    assert not wrong, "\n".join(wrong)
    names = {case.name for case in found}
    fresh = [f"{name}: {reason}" for name, reason in errors.items() if name not in known]
    assert not fresh, "these are not listed:\n" + "\n".join(fresh)
    assert not (known & names) - set(errors), "these pass now; take them out of expected_failures.txt"
    assert len(found) - len(errors) >= 1871 or share < 1
    assert compiled > 60 * share / 2


def main() -> None:
    import tempfile

    hf.config.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        counts: dict[str, int] = {}
        for case in cases():
            state, reason = outcome(case, Path(folder), "--compiled" in sys.argv)
            counts[state] = counts.get(state, 0) + 1
            if state != "ok":
                print(f"{case.name}: {state} {reason}".replace("\n", " "))
        print(counts, file=sys.stderr)


if __name__ == "__main__":
    main()
