"""Arrays of other libraries: taken as NumPy's arrays are, by functions, operators and compiled functions, and memory
shared both ways through DLPack.  Stand-ins behave as PyTorch's and JAX's arrays do; those run where they are installed.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from tests.support.paths import ROOT


class Column:
    """As a column of pandas': a shape, a dtype, ``__array__``."""

    def __init__(self, data: Any, dtype: Any = np.float32) -> None:
        self.data = np.asarray(data, dtype)
        self.shape_reads = 0

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.data if dtype is None else self.data.astype(dtype)


class Unhashable(Column):
    """As JAX's arrays, which have no hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return NotImplemented


class Exporter:
    """An array of ``dtype`` that is read through DLPack alone; bfloat16 as PyTorch exports it."""

    def __init__(self, data: Any, dtype: Any = hf.bfloat16) -> None:
        self.tensor = hf.asarray(data, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


class Tracked(Column):
    """As a tensor of PyTorch's that requires a gradient."""

    requires_grad = True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class Broken:
    """An object whose ``__dlpack__`` gives what it should not."""

    def __init__(self, give: Callable[[], Any]) -> None:
        self.give = give

    def __dlpack__(self, **options: Any) -> Any:
        return self.give()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


MAKERS: dict[str, Callable[[Any], Any]] = {
    "column": Column,
    "unhashable": Unhashable,
    "bfloat16": Exporter,
    "dlpack": lambda data: Exporter(data, hf.float32),
    "buffer": lambda data: array.array("f", data),
    "memoryview": lambda data: memoryview(np.asarray(data, np.float32)),
    "strided": lambda data: Column(np.repeat(np.asarray(data, np.float32), 2)[::2]),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return MAKERS[request.param]


def plain(value: Any) -> np.ndarray:
    return hf.asarray(value).numpy()


def test_functions_and_operators_take_them_as_arrays(make: Callable[[Any], Any]) -> None:
    x, y = hf.asarray([1.0, -2.0, 3.0]), make([2.0, 3.0, 4.0])
    other = plain(y)
    assert other.tolist() == [2, 3, 4] and other.dtype in (np.float32, hf.bfloat16)
    for form in (
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: a == b,
        lambda a, b: hf.maximum(b, a),
        lambda a, b: hf.stack([b, a]),
        lambda a, b: hf.asarray([b, b]),
        lambda a, b: hf.sum(b),
        lambda a, b: hf.where(a > 0, a, b),
        lambda a, b: hf.Variable(b).value(),
    ):
        found, wanted = form(x, y), form(x, other)
        assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist()


@pytest.mark.parametrize("maker", ["column", "unhashable"])
def test_operators_work_from_the_right(maker: str) -> None:
    x, y = hf.asarray([1.0, -2.0, 3.0]), MAKERS[maker]([2.0, 3.0, 4.0])
    assert (y - x).tolist() == [1, 5, 1] and (y > x).tolist() == [True, True, True]


def test_compiled_functions_take_them_as_arrays(make: Callable[[Any], Any]) -> None:
    traces = []

    @hf.function
    def f(x: Any, batch: Any) -> Any:
        traces.append(1)
        return x * 2, batch["y"][0] + x

    del traces[:]
    for k in range(8):
        data = [float(k), 1.0, 2.0]
        double, total = f(make(data), {"y": (make(data), "text")})
        assert double.tolist() == total.tolist() == [2.0 * k, 2.0, 4.0]
    assert isinstance(double, hf.Tensor)


def test_one_signature_for_arrays_of_every_library() -> None:
    f = hf.function(lambda x: hf.sum(x) + 1)
    for _ in range(4):
        for value in (
            Column([1, 2, 3]),
            Unhashable([1, 2, 3]),
            Exporter([1, 2, 3], hf.float32),
            array.array("f", [1, 2, 3]),
            np.asarray([1, 2, 3], np.float32),
            hf.asarray([1.0, 2.0, 3.0]),
        ):
            assert f(value).item() == 7
    assert len(f.signatures().rows) == 1 and not f.retraces()
    concrete = f.get_concrete_function(Column([1, 2, 3]))
    assert concrete(Unhashable([4, 5, 6])).item() == 16
    with pytest.raises(errors.ShapeError):
        concrete(Column([1]))


def test_what_they_hold_is_read_at_each_call() -> None:
    column = Column([1.0, 2.0])
    f = hf.function(lambda x: x * 10)
    results = []
    for k in range(5):
        column.data[0] = k
        results.append(f(column))
    assert [r.tolist() for r in results] == [[10.0 * k, 20.0] for k in range(5)]


def test_a_declared_signature_takes_them(make: Callable[[Any], Any]) -> None:
    f = hf.function(lambda x: x + 1, input_signature=[hf.TensorSpec((None,), plain(make([1.0])).dtype)])
    for n in (2, 3, 4):
        assert f(make([1.0] * n)).tolist() == [2.0] * n


def test_gradients_of_compiled_functions_of_them() -> None:
    f = hf.function(lambda x, w: hf.sum(x * w))
    w = hf.Variable([1.0, 2.0])
    for _ in range(4):
        with hf.GradientTape() as tape:
            y = f(Unhashable([3.0, 4.0]), w)
        assert tape.gradient(y, w).tolist() == [3, 4]


def test_an_object_that_only_becomes_an_array_stays_an_object() -> None:
    class Table:
        """Without a shape and a dtype of its own it may be anything."""

        scale = 3.0

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.ones(2, np.float32)

    assert hf.function(lambda x, t: x * t.scale)(hf.ones(2), Table()).tolist() == [3, 3]
    assert (hf.ones(2) + Table()).tolist() == [2, 2]


def test_they_are_indices() -> None:
    x = hf.arange(5)
    for key in (Column([3, 1], np.int64), array.array("l", [3, 1]), Exporter([3, 1], hf.int32)):
        assert x[key].tolist() == [3, 1]
    assert x[Column([True, False, False, False, True], bool)].tolist() == [0, 4]
    with pytest.raises(errors.ArgumentTypeError, match="not an integer"):
        x[Column([1.0])]


def test_gradients_of_others_do_not_get_lost() -> None:
    x, tracked = hf.ones(3), Tracked([1, 2, 3])
    for use in (
        lambda: hf.asarray(tracked),
        lambda: x + tracked,
        lambda: tracked * x,
        lambda: hf.sum(tracked),
        lambda: hf.stack([tracked, tracked]),
        lambda: hf.asarray([tracked, tracked]),
        lambda: hf.Variable(tracked),
        lambda: x[tracked],
        lambda: hf.function(lambda a: a + 1)(tracked),
        lambda: hf.function(lambda a: a["x"] + 1)({"x": tracked}),
    ):
        with pytest.raises(errors.ArgumentTypeError, match=r"requires a gradient.*detach\(\)") as info:
            use()
        assert info.value.where is not None and info.value.where.startswith(__file__)


def test_what_cannot_be_read_is_an_error_of_ours() -> None:
    def refuses() -> Any:
        raise TypeError("can't convert Sparse layout tensor to numpy")

    capsule = hf.ones(2).__dlpack__()
    np.from_dlpack(Broken(lambda: capsule))
    for value in (Broken(refuses), Broken(lambda: 5), Broken(lambda: capsule)):
        for use in (hf.asarray, hf.sum, hf.from_dlpack, hf.function(lambda x: x + 1), lambda v: hf.ones(2) + v):
            with pytest.raises(errors.ArgumentTypeError, match="Broken cannot be read"):
                use(value)
    for use in (hf.asarray, hf.function(lambda x: x + 1)):
        with pytest.raises(errors.DTypeError, match="is not supported"):
            use(Column([1j], np.clongdouble))
        for texts in (Column(["a"], object), Column(["a"], str)):
            with pytest.raises((errors.DTypeError, errors.ArgumentTypeError)):
                use(texts) + 1


# DLPack


class _Header(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)) + (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


def header(capsule: Any) -> _Header:
    get, name = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
    called = name(capsule)
    return _Header.from_address(get(capsule, called) + (32 if called.endswith(b"_versioned") else 0))


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}])
def test_bfloat16_travels(options: Any) -> None:
    x = hf.asarray([[1.5, -2.0], [3.0, 0.25]], dtype=hf.bfloat16)
    capsule = x.__dlpack__(**options)
    found = header(capsule)
    assert (found.code, found.bits, found.lanes, found.ndim) == (4, 16, 1, 2)
    assert np.ctypeslib.as_array((ctypes.c_uint16 * 4).from_address(found.data)).tolist() == [
        0x3FC0, 0xC000, 0x4040, 0x3E80,
    ]  # fmt: skip
    shares = bool(options) and not options.get("copy")
    assert (found.data == x.numpy().ctypes.data) == shares
    y = hf.from_dlpack(Exporter([[1.5, -2.0], [3.0, 0.25]]))
    assert y.dtype == hf.bfloat16 and y.tolist() == x.tolist()
    assert np.shares_memory(hf.from_dlpack(x).numpy(), x.numpy())


def test_variables_export_their_value() -> None:
    v = hf.Variable([1.0, 2.0])
    array = np.from_dlpack(v)
    assert v.__dlpack_device__() == (1, 0) and not array.flags.writeable
    assert np.shares_memory(array, v.numpy())
    add = hf.function(lambda: v.assign_add([1.0, 1.0]))
    for _ in range(4):
        add()
    v.assign([7.0, 7.0])
    assert array.tolist() == [1, 2] and np.from_dlpack(v).tolist() == [7, 7]
    assert hf.from_dlpack(v).tolist() == [7, 7]


def test_options_of_exports() -> None:
    for x in (hf.ones(3), hf.ones(3, hf.bfloat16), hf.Variable([1.0])):
        for options, kind in (
            ({"stream": 1}, errors.ArgumentError),
            ({"stream": -1}, errors.ArgumentError),
            ({"dl_device": (2, 0)}, errors.SharingError),
            ({"dl_device": 3}, errors.ArgumentTypeError),
            ({"max_version": "1"}, errors.ArgumentTypeError),
            ({"copy": False}, errors.SharingError),
            ({"copy": False, "max_version": (0, 8)}, errors.SharingError),
        ):
            with pytest.raises(kind):
                x.__dlpack__(**options)
        x.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False)
    assert issubclass(errors.SharingError, BufferError)


def test_imports_of_other_dtypes() -> None:
    assert hf.from_dlpack(np.ones(2, complex)).dtype == hf.complex128

    def of_code(code: int, lanes: int = 1) -> Any:
        capsule = hf.ones(2).__dlpack__()
        header(capsule).code, header(capsule).lanes = code, lanes
        return capsule

    for code, lanes in ((10, 1), (2, 4)):
        with pytest.raises(errors.DTypeError, match="DLPack's"):
            hf.from_dlpack(Broken(lambda code=code, lanes=lanes: of_code(code, lanes)))


LIBRARIES = """
import warnings
import numpy as np, hybridflow as hf
x = hf.asarray([1.0, -2.0, 3.0])
if {library!r} == "torch":
    import torch as library
    make, bfloat16 = lambda data, **o: library.tensor(data, **o), library.bfloat16
    back = library.from_dlpack
else:
    import jax.numpy as library
    make, bfloat16 = library.asarray, library.bfloat16
    back = library.from_dlpack
warnings.simplefilter("error")
y = make([2.0, 3.0, 4.0])
for found in (x + y, y + x, hf.add(y, x)):
    assert isinstance(found, hf.Tensor) and found.tolist() == [3, 1, 7], found
assert (y @ x).tolist() == 8 and (y > x).tolist() == [True] * 3 and hf.sum(y).tolist() == 9
b = make([1.5, 2.0], dtype=bfloat16)
assert hf.asarray(b).dtype == hf.from_dlpack(b).dtype == hf.bfloat16 and hf.asarray(b).tolist() == [1.5, 2]
there = back(hf.asarray([1.5, 2.0], dtype=hf.bfloat16))
assert there.dtype == bfloat16 and there.tolist() == [1.5, 2]
assert back(hf.Variable([1.0, 2.0])).tolist() == [1, 2]
f = hf.function(lambda a, d: (a * 2, d["k"] + 1))
for k in range(6):
    double, more = f(make([1.0, float(k)]), {{"k": b}})
    assert double.tolist() == [2, 2 * k] and more.tolist() == [2.5, 3] and more.dtype == hf.bfloat16
assert not f.retraces() and len(f.signatures().rows) == 1
assert x[make([2, 0])].tolist() == [3, 1]
if {library!r} == "torch":
    tracked = library.ones(3, requires_grad=True)
    for use in (hf.asarray, f, hf.sum, lambda t: x + t, lambda t: t + x, hf.from_dlpack):
        try:
            use(*[tracked] * (2 if use is f else 1))
        except hf.errors.ArgumentTypeError as error:
            assert "detach()" in str(error), error
        else:
            raise AssertionError(use)
    for odd in (library.eye(3).to_sparse(), library.ones(3, device="meta"), library.ones(3, dtype=library.complex32)):
        for use in (hf.asarray, hf.function(lambda x: x + 1), lambda t: x + t):
            try:
                use(odd)
            except hf.errors.HybridflowError:
                pass
            else:
                raise AssertionError(odd)
"""


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_libraries(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-c", LIBRARIES.format(library=library)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


# What a compiled function makes of an argument and of the elements of a tensor, what these are, and what they become.
READS: dict[str, tuple[Any, list[Any], Any]] = {
    "numpy": (lambda x, t: x * t.numpy()[0].item(), [2.0, 5.0], 9.0),
    "tolist": (lambda x, t: x * t.tolist()[1], [2.0, 5.0], 9.0),
    "np.asarray": (lambda x, t: x * np.asarray(t)[1].item(), [2.0, 5.0], 9.0),
    "item": (lambda x, t: x * t.item(), [3.0], 9.0),
    "float": (lambda x, t: x * float(t), [3.0], 9.0),
    "a mask": (lambda x, t: x[t], [True, False, True], True),
    "boolean_mask": (lambda x, t: hf.boolean_mask(x, t), [True, False, True], True),
    "repeat": (lambda x, t: hf.repeat(x, t), [1, 2, 0], 1),
    "unique_values": (lambda x, t: hf.unique_values(t), [2.0, 5.0], 4.0),
    "bincount": (lambda x, t: hf.bincount(t), [1, 2, 0], 1),
    "a copy": (lambda x, t: x * (+t), [1.0, 2.0, 3.0], 9.0),
    "a slice": (lambda x, t: x * t[:], [1.0, 2.0, 3.0], 9.0),
    "a product": (lambda x, t: x * t, [1.0, 2.0, 3.0], 9.0),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("kind", ["from_dlpack", "asarray"])
def test_programs_see_what_the_owner_of_memory_writes(name: str, kind: str) -> None:
    f, elements, later = READS[name]
    memory = np.array(elements)
    if kind == "asarray" and memory.size == 1:
        pytest.skip("an array of one element is a constant of the program, whose elements are not read")
    shared = hf.from_dlpack(memory) if kind == "from_dlpack" else None
    x = hf.asarray([1.0, 2.0, 3.0][: memory.size] if "a " in name or "mask" in name else [1.0, 2.0, 3.0])

    def read(x: Any) -> Any:
        return f(x, hf.asarray(memory) if shared is None else shared)

    compiled = hf.function(read)
    for value in (None, None, later, later):
        if value is not None:
            memory[...] = value  # which the array still allows
        np.testing.assert_array_equal(compiled(x).numpy(), read(x).numpy())
    assert len(compiled.signatures()) <= 2  # one more where what was read has changed


def test_shared_memory_is_not_kept() -> None:
    from hybridflow.core import tensor

    def use() -> None:
        shared = hf.from_dlpack(np.ones(3))
        assert hf.function(lambda x: x * shared.numpy()[0].item())(hf.ones(2)).tolist() == [1.0, 1.0]

    before = len(tensor._shared)
    for _ in range(5):
        use()
    gc.collect()
    assert len(tensor._shared) <= before  # of earlier tests some may go meanwhile
