"""Arrays of other libraries on a GPU, through DLPack: without a copy, and in the order of the streams, on the stand-ins
for CuPy and the driver."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import dlpack
from hybridflow.errors import ArgumentTypeError, SharingError
from tests.support.cuda_emulator import Array, emulated  # noqa: F401


class Theirs:
    """A tensor of another library, which works on a stream of its own."""

    def __init__(self, emulator, array, stream):
        self.emulator, self.stream, self.reason = emulator, stream, None
        self.inner = Array(array, 0)
        self.shape, self.dtype = self.inner.shape, self.inner.dtype
        self.address = self.inner.data.ptr

    def queue_fill(self, value):
        host = self.inner._host
        self.emulator.driver._put(self.stream, lambda: host.fill(value))

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, **options):
        if self.reason is not None:
            raise self.reason
        self.emulator.follow({None: 0, 1: 0}.get(stream, stream), self.stream)
        return self.inner.__dlpack__(stream=stream, **options)


def copies(emulator, before):
    return [name for name in emulator.driver.calls[before:] if name.startswith("cuMemcpy")]


def test_arguments_are_read_where_they_lie_when_their_library_has_written_them(emulated):  # noqa: F811
    f = hf.function(lambda x: x * 2 + 1)
    with emulated.on_stream() as stream:
        theirs = Theirs(emulated, np.zeros(5, np.float32), stream)
    theirs.queue_fill(3.0)
    before = len(emulated.driver.calls)
    y = f(theirs)
    assert not copies(emulated, before), "it is not copied"
    theirs.queue_fill(4.0)
    assert y.device == "gpu:0" and f(theirs).tolist() == [9.0] * 5


def test_tensors_over_their_memory(emulated):  # noqa: F811
    with emulated.on_stream() as stream:
        theirs = Theirs(emulated, np.arange(6, dtype=np.float32).reshape(2, 3), stream)
    shared = hf.from_dlpack(theirs)
    assert shared._array.data.ptr == theirs.address and shared.tolist() == [[0, 1, 2], [3, 4, 5]]
    for own in (hf.asarray(theirs), hf.from_dlpack(theirs, copy=True)):
        assert own._array.data.ptr != theirs.address and own.tolist() == shared.tolist()
    assert hf.from_dlpack(theirs, copy=False)._array.data.ptr == theirs.address
    assert (hf.sum(theirs) + 1).item() == 16


def test_strided_memory_is_copied(emulated):  # noqa: F811
    with emulated.on_stream() as stream:
        theirs = Theirs(emulated, np.arange(6, dtype=np.float32).reshape(2, 3).T, stream)
    assert hf.from_dlpack(theirs).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert hf.function(lambda x: x + 1)(theirs).tolist() == [[1, 4], [2, 5], [3, 6]]


def test_what_their_library_refuses_is_said(emulated):  # noqa: F811
    theirs = Theirs(emulated, np.zeros(5, np.float32), 0)
    theirs.reason = BufferError("Can't export tensors that require gradient")
    with pytest.raises(ArgumentTypeError, match="Theirs cannot be read: Can't export"):
        hf.function(lambda x: x + 1)(theirs)


def test_tensors_go_out_read_only_and_after_what_is_queued(emulated):  # noqa: F811
    x = hf.arange(5.0).to_device("gpu:0")
    y = hf.function(lambda x: hf.cumulative_sum(x))(x)
    assert not emulated.driver.is_idle() and y.__dlpack_device__() == (2, 0)
    with emulated.on_stream() as stream:
        pass
    capsule = y.__dlpack__(stream=stream, max_version=(1, 0))
    header = dlpack._header(capsule)
    assert header.data == y._array.data.ptr and header.device_type == 2
    assert ctypes.c_uint64.from_address(ctypes.addressof(header) - 8).value & 1, "it is read-only"
    found = []
    emulated.driver._put(stream, lambda: found.append((ctypes.c_float * 5).from_address(header.data)[:]))
    emulated.driver.synchronize(stream)
    assert found == [[0, 1, 3, 6, 10]]


def test_who_cannot_be_told_that_it_is_read_only_gets_a_copy(emulated):  # noqa: F811
    x = hf.arange(5.0).to_device("gpu:0")
    for options in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0), "copy": True}):
        assert dlpack._header(x.__dlpack__(**options)).data != x._array.data.ptr
    with pytest.raises(SharingError, match="immutable"):
        x.__dlpack__(copy=False)
    with pytest.raises(ArgumentTypeError, match="max_version"):
        x.__dlpack__(max_version=1)
