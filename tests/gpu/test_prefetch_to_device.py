"""Elements of datasets that come to a GPU in advance, on an emulated one whose streams run as late as they may."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compat import tf
from hybridflow.errors import ArgumentError, ArgumentTypeError, DeviceError, DeviceMemoryError
from hybridflow.runtime.cuda import pinned_transfers
from tests.support.cuda_emulator import emulated  # noqa: F401  # a fixture

Dataset = hf.data.Dataset


def rows(count, width=40):
    return np.arange(float(count * width)).reshape(count, width)


@pytest.mark.parametrize("size", [None, 0, 1, 2, 5, 100, hf.data.AUTOTUNE])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_elements_are_the_same_on_the_device(emulated, size, count):  # noqa: F811
    x, y = rows(count), np.arange(count)
    data = Dataset.from_tensor_slices({"x": x, "y": (y, y * 2)}).batch(2)
    for _ in range(2):
        found = list(data.prefetch_to_device("gpu:1", size))
        assert len(found) == len(data)
        for got, want in zip(found, data):
            assert got["x"].device == got["y"][1].device == "gpu:1"
            assert got["x"].tolist() == want["x"].tolist() and got["y"][1].tolist() == want["y"][1].tolist()
    assert data.prefetch_to_device("gpu:0").element_spec == data.element_spec


def test_copies_go_beside_the_work(emulated, monkeypatch):  # noqa: F811
    """The steps run as late as they may, and what they read is what was sent for them."""
    monkeypatch.setattr(pinned_transfers, "PINNED_CHUNK", 100)
    step = hf.function(lambda total, x: total + hf.sum(x, axis=0))
    total = hf.zeros(40, dtype=hf.float64).to_device("gpu:0")
    for x in Dataset.from_tensor_slices(rows(12)).batch(3).prefetch_to_device("gpu:0", 2):
        total = step(total, x)
        del x
        gc.collect()
    assert not emulated.driver.is_idle()
    copies = [name for name, stream in emulated.driver._streams.items() if name and stream.done + len(stream.queue)]
    assert len(copies) == 1, "copies have a stream of their own"
    assert total.tolist() == rows(12).sum(axis=0).tolist()


def test_another_stream_may_take_the_elements(emulated):  # noqa: F811
    running = iter(Dataset.from_tensor_slices(rows(6)).prefetch_to_device("gpu:0"))
    first = next(running)
    with emulated.on_stream() as stream:
        second = next(running) * 2
        emulated.driver.synchronize(stream)
    assert first.tolist() == rows(6)[0].tolist() and second.tolist() == (rows(6)[1] * 2).tolist()


def test_memory_comes_back(emulated):  # noqa: F811
    data = Dataset.from_tensor_slices(rows(50)).prefetch_to_device("gpu:0", 3)
    for taken in (0, 1, 10, 50):
        running = iter(data)
        for x in itertools.islice(running, taken):
            del x
        running.close()
        del running
        gc.collect()
        emulated.driver.synchronize()
        assert emulated.driver.bytes_in_use == 0
    used = [x for x in emulated.driver._streams if x]
    assert len(used) == 1


def test_no_room_is_an_error_and_the_process_goes_on(emulated):  # noqa: F811
    data = Dataset.from_tensor_slices(rows(4)).prefetch_to_device("gpu:0", 2)
    list(data)
    gc.collect()
    emulated.driver.synchronize()
    emulated.driver.room = 500
    with pytest.raises(DeviceMemoryError, match="no room"):
        list(data)
    emulated.driver.room = 1 << 40
    emulated.driver.fail["cuMemcpyHtoDAsync_v2"] = 719
    with pytest.raises(DeviceError, match="a kernel failed"):
        list(data)
    assert len(list(data)) == 4


def test_errors_come_in_their_turn(emulated):  # noqa: F811
    def work(x):
        if x == 2:
            raise ValueError("not two")
        return x * 10

    running = iter(Dataset.range(4).map(work).prefetch_to_device("gpu:0", 3))
    assert [next(running).item(), next(running).item()] == [0, 10]
    with pytest.raises(ValueError, match="not two"):
        next(running)


def test_runs_go_on_where_they_were(emulated):  # noqa: F811
    data = Dataset.range(7).shuffle(3, seed=1, reshuffle_each_iteration=False).prefetch_to_device("gpu:0", 2)
    whole = [x.item() for x in data]
    for taken in range(8):
        running = iter(data)
        begun = [x.item() for x in itertools.islice(running, taken)]
        again = iter(data).restore(running.state())
        assert begun + [x.item() for x in again] == whole


def test_texts_stay_and_the_cpu_is_a_device(emulated):  # noqa: F811
    data = Dataset.from_tensor_slices((["a", "b"], [1.0, 2.0]))
    assert [(text, x.device) for text, x in data.prefetch_to_device("gpu")] == [("a", "gpu:0"), ("b", "gpu:0")]
    back = data.prefetch_to_device("gpu:0").prefetch_to_device("cpu")
    assert [(text, x.item(), x.device) for text, x in back] == [("a", 1, "cpu"), ("b", 2, "cpu")]
    there = data.prefetch_to_device("gpu:0").prefetch_to_device("gpu:1")
    assert [x.device for _, x in there] == ["gpu:1", "gpu:1"]


def test_tensorflow_s_names(emulated):  # noqa: F811
    data = Dataset.range(3)
    for made in (
        data.apply(tf.data.experimental.prefetch_to_device("/GPU:0", buffer_size=1)),
        data.apply(tf.data.experimental.copy_to_device("/device:GPU:0")),
    ):
        assert [x.device for x in made] == ["gpu:0"] * 3


def test_bad_arguments(emulated):  # noqa: F811
    with pytest.raises(DeviceError, match="'tpu' is not a device"):
        Dataset.range(3).prefetch_to_device("tpu")
    with pytest.raises(DeviceError, match="no gpu:9"):
        Dataset.range(3).prefetch_to_device("gpu:9")
    with pytest.raises(ArgumentError, match="buffer_size is -2"):
        Dataset.range(3).prefetch_to_device("gpu:0", -2)
    with pytest.raises(ArgumentTypeError, match="must be an int"):
        Dataset.range(3).prefetch_to_device("gpu:0", 1.5)
