"""Whose memory a value lies in: nothing writes to what somebody else may see, and nobody else can write to a tensor."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import hybridflow as hf


def addresses(variable):
    return variable._tensor._array.ctypes.data


@pytest.fixture(params=["native", "nested"])
def step(request):
    """Adds 1 to a variable: by a native call, or by one that goes through Python."""

    def make(variable):
        @hf.function
        def add(box):
            variable.assign_add(box["x"] if isinstance(box, dict) else box)

        x = hf.asarray(np.ones(1, variable.dtype))
        return lambda: add({"x": x} if request.param == "nested" else x)

    return make


def test_memory_of_numpy_is_never_written(step):
    array = np.arange(5.0)
    v = hf.Variable(hf.from_dlpack(array))
    add = step(v)
    for k in range(4):
        add()
        np.testing.assert_array_equal(array, np.arange(5.0))
        np.testing.assert_array_equal(v.numpy(), np.arange(5.0) + k + 1)


class _Foreign:
    """Memory of ctypes, exported as a DLPack capsule of the first version: NumPy sees a capsule with one reference."""

    def __init__(self, values):
        self.data = (ctypes.c_float * len(values))(*values)
        self.shape = (ctypes.c_int64 * 1)(len(values))

        class Managed(ctypes.Structure):  # DLManagedTensor
            _fields_ = [
                ("data", ctypes.c_void_p),
                ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64),
                ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p),
            ]

        self.managed = Managed(ctypes.addressof(self.data), 1, 0, 1, 2, 32, 1, ctypes.addressof(self.shape))

    def __dlpack__(self, **options):
        make = ctypes.pythonapi.PyCapsule_New
        make.argtypes, make.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
        return make(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return 1, 0


def test_memory_behind_a_capsule_is_never_written(step):
    foreign = _Foreign([1, 2, 3])
    v = hf.Variable(hf.from_dlpack(foreign))
    add = step(v)
    for _ in range(3):
        add()
    assert list(foreign.data) == [1, 2, 3] and v.tolist() == [4, 5, 6]
    del v, add
    gc.collect()


def test_updates_of_what_nobody_sees_stay_in_place(step):
    array = np.arange(5.0)
    v = hf.Variable(hf.from_dlpack(array))
    add = step(v)
    for _ in range(3):
        add()
    address = addresses(v)
    for _ in range(3):
        add()
    assert addresses(v) == address != array.ctypes.data


LEAKS = {
    "value": lambda v: v.value(),
    "numpy": lambda v: v.numpy(),
    "array": lambda v: np.asarray(v),
    "memoryview": lambda v: memoryview(v.numpy()),
    "view": lambda v: v.value()[1:],
    "reshaped": lambda v: hf.reshape(v, (5, 1)),
    "dlpack": lambda v: np.from_dlpack(v.value()),
    "variable": lambda v: hf.Variable(v.value()),
    "argument": lambda v: hf.function(lambda x: x)(v.value()),
    "assigned": lambda v: hf.Variable(np.zeros(5)).assign(v),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_what_was_seen_once_stays_what_it_was(step, leak):
    v = hf.Variable(np.arange(5.0))
    add = step(v)
    kept = []
    for _ in range(4):
        add()
        held = LEAKS[leak](v)
        kept.append((held, np.array(held).copy()))
    add()
    for held, expected in kept:
        np.testing.assert_array_equal(np.array(held), expected)


def test_a_captured_value_is_a_constant(step):
    v = hf.Variable(np.arange(5.0))
    add = step(v)
    add()
    seen = v.value()
    plus = hf.function(lambda x: x + seen)
    want = plus(hf.zeros((5,), hf.float64)).numpy().copy()
    for _ in range(3):
        add()
        np.testing.assert_array_equal(plus(hf.zeros((5,), hf.float64)).numpy(), want)


def test_state_goes_on_from_what_was_assigned(step):
    v, array = hf.Variable(np.arange(5.0)), np.full(5, 10.0)
    add = step(v)
    add()
    add()
    shared = hf.from_dlpack(array)
    v.assign(shared)
    add()
    add()
    assert v.tolist() == [12.0] * 5 and array.tolist() == [10.0] * 5 and shared.tolist() == [10.0] * 5


# Out of tensors.


def tensors():
    x = hf.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    square = hf.function(lambda x: x * x)
    return {
        "made": hf.asarray([1.0, 2.0]),
        "eager": x + 1,
        "computed": hf.exp(x),
        "compiled": square(x),
        "view": x[1:],
        "transposed": hf.matrix_transpose(x),
        "reshaped": hf.reshape(x + 1, (6,)),
        "imported": hf.from_dlpack(np.arange(3.0)),
        "variable": hf.Variable([1.0, 2.0]).value(),
        "scalar": hf.sum(x),
    }


@pytest.mark.parametrize("kind", tensors())
@pytest.mark.parametrize("leave", [lambda t: t.numpy(), np.asarray, lambda t: t.numpy()[...]])
def test_arrays_of_tensors_cannot_be_unlocked(kind, leave):
    array = leave(tensors()[kind])
    assert not array.flags.writeable and memoryview(array).readonly
    with pytest.raises(ValueError):
        array.setflags(write=True)
    with pytest.raises(ValueError):
        array[...].flags.writeable = True


def test_importing_does_not_lock_the_owner():
    array = np.arange(3.0)
    x = hf.from_dlpack(array)
    x.numpy()
    array[0] = 5  # the owner's business
    y = hf.asarray(array)
    y.numpy()
    array[1] = 5
    assert y.tolist() == [5, 1, 2]


class _Managed(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


def test_consumers_without_versions_get_a_copy():
    """They do not know of read-only memory, and may write to what they get."""
    x = hf.asarray([1.0, 2.0, 3.0])
    capsule = x.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    data = ctypes.cast(_Managed.from_address(get(capsule, b"dltensor")).data, ctypes.POINTER(ctypes.c_float))
    assert list(data[:3]) == [1, 2, 3]
    data[0] = 9
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="immutable"):
        x.__dlpack__(copy=False)


def test_consumers_of_versions_get_the_memory_and_the_flag():
    x = hf.asarray([1.0, 2.0, 3.0])
    array = np.from_dlpack(x)
    assert array.ctypes.data == x.numpy().ctypes.data and not array.flags.writeable
    with pytest.raises(ValueError):
        array.setflags(write=True)
    capsule = x.__dlpack__(max_version=(1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    # DLManagedTensorVersioned: two words of version, two pointers, then the flags, of which the first bit is read-only
    assert ctypes.c_uint64.from_address(get(capsule, b"dltensor_versioned") + 24).value & 1
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 9
    assert x.tolist() == [1, 2, 3]
