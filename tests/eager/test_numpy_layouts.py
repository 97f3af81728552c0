"""NumPy arrays of every layout are values like any others: byte orders, strides, fields of records, unaligned memory.

Each use is made five times, since later calls are answered by other code: the body, a plan, native code.  The reference
is the same use of a plain copy of the array, and for some uses NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ops import TABLE
from hybridflow.eager.dispatch import apply
from hybridflow.errors import ShapeError
from tests.support.bits import same_bits

SHAPE = (3, 4)
CALLS = 5


class Subclass(np.ndarray):
    pass


def _swapped(x: np.ndarray) -> np.ndarray:
    return x.astype(x.dtype.newbyteorder("S"))


def _unaligned(x: np.ndarray) -> np.ndarray:
    found = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def _field(x: np.ndarray, name: str = "b") -> np.ndarray:
    found = np.zeros(x.shape, [("a", "u1"), ("b", x.dtype), ("c", "u1"), ("d", x.dtype.newbyteorder("S"))])
    found[name] = x
    return found[name]


def _read_only(x: np.ndarray) -> np.ndarray:
    found = x.copy()
    found.flags.writeable = False
    return found


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "swapped": _swapped,
    "swapped, read only": lambda x: _read_only(_swapped(x)),
    "swapped, in columns": lambda x: np.asfortranarray(_swapped(x)),
    "swapped, every second": lambda x: np.repeat(_swapped(x), 2, axis=-1)[..., ::2],
    "swapped, of a subclass": lambda x: _swapped(x).view(Subclass),
    "unaligned": _unaligned,
    "field": _field,
    "swapped field": lambda x: _field(x, "d"),
    "in columns": np.asfortranarray,
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "read only": _read_only,
    "of a subclass": lambda x: x.view(Subclass),
    "with metadata": lambda x: x.astype(np.dtype(x.dtype.str, metadata={"unit": "m"})),
    "swapped with metadata": lambda x: x.astype(np.dtype(x.dtype.newbyteorder("S").str, metadata={"unit": "m"})),
}
ARRAYS = {
    "float32": np.linspace(-2, 5, 12, dtype=np.float32).reshape(SHAPE),
    "float64": np.array([[np.nan, np.inf, -np.inf, -0.0], [0.0, 1.5, -2.5, 1e300], [1e-310, 3, 4, 5]]),
    "float16": np.linspace(-2, 5, 12, dtype=np.float16).reshape(SHAPE),
    "int64": np.arange(-(2**40), 2**40, 2**39 // 3)[:12].reshape(SHAPE),
    "int32": np.arange(-6, 6, dtype=np.int32).reshape(SHAPE),
    "uint16": np.arange(65530, 65542).astype(np.uint16).reshape(SHAPE),
    "longlong": np.arange(12, dtype=np.longlong).reshape(SHAPE),
    "nothing": np.zeros((0, 4), np.float32),
    "one element": np.full((1, 1), 1.5, np.float32),
}
USES: dict[str, Callable[[Any], Any]] = {
    "asarray": hf.asarray,
    "add": lambda x: hf.add(x, x),
    "with a tensor": lambda x: hf.asarray(x) * x,
    "sum": hf.sum,
    "sort": hf.sort,
    "transpose": hf.matrix_transpose,
    "product": lambda x: hf.matmul(x, x.T),
    "concat": lambda x: hf.concat([x, hf.asarray(x)]),
    "where": lambda x: hf.where(hf.asarray(True), x, x),
    "clip": lambda x: hf.clip(x, 0, 3),
    "reshape": lambda x: hf.reshape(x, (-1,)),
    "equal": lambda x: hf.equal(x, x),
    "NumPy's function": lambda x: np.add(hf.asarray(x), x),
    "in a list": lambda x: hf.stack([x, x]),
    "a gradient": lambda x: _gradient(x),
}
NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "asarray": np.asarray,
    "add": lambda x: x + x,
    "concat": lambda x: np.concatenate([x, x]),
    "transpose": lambda x: x.T,
    "equal": lambda x: x == x,
}


def _gradient(x: Any) -> Any:
    factor = hf.asarray(x)
    with hf.GradientTape() as tape:
        tape.watch(factor)
        y = hf.multiply(hf.multiply(factor, x), x)
    found = tape.gradient(y, factor)
    return factor if found is None else found


def _check(use: Callable[[Any], Any], x: np.ndarray, expected: np.ndarray) -> None:
    for call in range(CALLS):
        found = np.asarray(use(x))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), call
        assert same_bits(found, expected), call


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ARRAYS)
def test_layouts_of_arrays(name: str, layout: str) -> None:
    plain, x = ARRAYS[name], LAYOUTS[layout](ARRAYS[name])
    with np.errstate(all="ignore"):
        for text, use in USES.items():
            if text == "a gradient" and plain.dtype.kind != "f":
                continue
            expected = np.asarray(use(plain))
            if text in NUMPY:
                assert same_bits(expected, NUMPY[text](plain)), text
            _check(use, x, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["float64", "int32", "nothing"])
def test_layouts_in_compiled_functions(name: str, layout: str) -> None:
    """As arguments, as values that a function captures, and where plain arrays came before."""
    plain, x = ARRAYS[name], LAYOUTS[layout](ARRAYS[name])
    for text in ("add", "concat", "with a tensor", "product"):
        use = USES[text]
        with np.errstate(all="ignore"):
            expected = np.asarray(use(plain))
        compiled = hf.function(use)
        _check(compiled, x, expected)
        _check(compiled, plain, expected)
        _check(compiled, x, expected)
        captures = hf.function(lambda use=use: use(x))
        _check(lambda _, call=captures: call(), x, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_in_variables(layout: str) -> None:
    plain, x = ARRAYS["float64"], LAYOUTS[layout](ARRAYS["float64"])
    variable = hf.Variable(x)
    assert same_bits(variable.numpy(), plain)
    for _ in range(CALLS):
        variable.assign(np.zeros(SHAPE))
        variable.assign(x)
        assert same_bits(variable.numpy(), plain)
    for _ in range(CALLS):
        variable.assign(np.zeros(SHAPE))
        variable.assign_add(x)
    with np.errstate(all="ignore"):
        assert same_bits(variable.numpy(), np.zeros(SHAPE) + plain)


def test_dtypes_that_are_equal_and_other_objects() -> None:
    """Native code compares objects; a tensor's dtype is always the one that NumPy gives by its name."""
    alike = np.dtype("f4", metadata={"unit": "m"})
    for made in (
        hf.asarray(np.ones(3, alike)),
        hf.asarray(np.ones(3, ">f4")),
        hf.asarray([1.0, 2.0], dtype=alike),
        hf.zeros(3, dtype=alike),
        hf.astype(hf.ones(3, dtype="float64"), alike),
        hf.Variable(np.ones(3, alike)).value(),
    ):
        assert made.numpy().dtype is np.dtype("float32") and made.dtype is np.dtype("float32")


def test_a_pass_that_native_code_does_not_take_is_made_in_python() -> None:
    """The gradient's method is a module of its own, which asks another one."""
    for array in [np.arange(12, dtype=np.float32)] * 6 + [np.arange(12, dtype=np.dtype("f4", metadata={"a": 1}))] * 2:
        x = hf.asarray(np.zeros(12, np.float32))
        x._array = array
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        assert same_bits(tape.gradient(y, x).numpy(), 3 * array**2)


@pytest.mark.parametrize("name", ["add", "atan2", "maximum"])
def test_an_op_of_other_ranks_is_refused_however_often_it_was_applied(name: str) -> None:
    """Making an array contiguous leaves it its shape, that of no axes too."""
    scalar, one = hf.asarray(np.float32(1)), hf.ones(1)
    for _ in range(CALLS):
        assert apply(TABLE[name], one, one).shape == (1,)
        assert apply(TABLE[name], scalar, scalar).shape == ()
        for operands in ((scalar, one), (one, scalar), (one, hf.ones((1, 1)))):
            with pytest.raises(ShapeError):
                apply(TABLE[name], *operands)
