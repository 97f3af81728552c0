"""``tf.keras.datasets`` read files in the form in which others write them, and nothing but data."""

from __future__ import annotations

import gzip
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    return tmp_path / "datasets"


def test_mnist(home: Path) -> None:
    parts = {"x_train": np.arange(12).reshape(3, 2, 2), "y_train": np.arange(3), "x_test": np.ones((1, 2, 2))}
    np.savez(home / "mnist.npz", **parts, y_test=np.array([7]))
    (x, y), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
    assert np.array_equal(x, parts["x_train"]) and np.array_equal(y, [0, 1, 2])
    assert np.array_equal(x_test, parts["x_test"]) and y_test.tolist() == [7]
    assert np.array_equal(tf.keras.datasets.mnist.load_data(str(home / "mnist.npz"))[0][0], x)


def test_a_file_that_is_not_there(home: Path) -> None:
    for room in ("mnist", "fashion_mnist", "cifar10", "cifar100", "imdb", "reuters", "boston_housing"):
        with pytest.raises(FileNotFoundError, match="nothing is downloaded") as error:
            getattr(tf.keras.datasets, room).load_data()
        assert str(home) in str(error.value)


def test_fashion_mnist(home: Path) -> None:
    (home / "fashion-mnist").mkdir()
    for part, count in (("train", 3), ("t10k", 2)):
        pictures = np.arange(count * 784).astype(np.uint8).tobytes()
        (home / f"fashion-mnist/{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + pictures))
        (home / f"fashion-mnist/{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + bytes(range(count))))
    (x, y), (x_test, y_test) = tf.keras.datasets.fashion_mnist.load_data()
    assert x.shape == (3, 28, 28) and y.tolist() == [0, 1, 2] and x[1, 0, 0] == 784 % 256
    assert x_test.shape == (2, 28, 28) and y_test.tolist() == [0, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_cifar(home: Path, packed: bool) -> None:
    rng = np.random.RandomState(0)
    inside = home / "cifar-10-batches-py"
    inside.mkdir()
    data = {}
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        data[name] = rng.randint(0, 256, (2, 3072)).astype(np.uint8)
        content = {b"data": data[name], b"labels": [1, 9], b"batch_label": b"x"}
        (inside / name).write_bytes(pickle.dumps(content, protocol=2))
    if packed:
        with tarfile.open(home / "cifar-10-batches-py.tar.gz", "w:gz") as tar:
            tar.add(inside, "cifar-10-batches-py")
        for file in inside.iterdir():
            file.unlink()
        inside.rmdir()
    (x, y), (x_test, y_test) = tf.keras.datasets.cifar10.load_data()
    assert x.shape == (10, 32, 32, 3) and y[:, 0].tolist() == [1, 9] * 5 and y_test.shape == (2, 1)
    assert np.array_equal(x_test[0, :, :, 1].ravel(), data["test_batch"][0, 1024:2048])


def test_a_file_that_wants_more_than_data_is_refused(home: Path, tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> object:
            return Path.touch, (tmp_path / "touched",)

    inside = home / "cifar-100-python"
    inside.mkdir()
    for name in ("train", "test"):
        (inside / name).write_bytes(pickle.dumps({b"data": Hostile()}))
    with pytest.raises(pickle.UnpicklingError, match="no array and no container"):
        tf.keras.datasets.cifar100.load_data()
    np.savez(home / "imdb.npz", x_train=np.array([Hostile()], object), y_train=np.array([1]))
    with pytest.raises(pickle.UnpicklingError, match="no array and no container"):
        tf.keras.datasets.imdb.load_data()
    assert not (tmp_path / "touched").exists()


def test_texts(home: Path) -> None:
    def rows(*lists: list[int]) -> np.ndarray:
        found = np.empty(len(lists), object)
        found[:] = lists
        return found

    np.savez(
        home / "imdb.npz",
        x_train=rows([1, 2, 9], [3]),
        y_train=np.array([0, 1]),
        x_test=rows([5, 6], [1, 1, 1, 1]),
        y_test=np.array([1, 0]),
    )
    (x, y), (x_test, y_test) = tf.keras.datasets.imdb.load_data(num_words=9)
    train = dict(zip(y.tolist(), x))
    assert train == {0: [1, 4, 5, 2], 1: [1, 6]}  # begun with 1, shifted by 3, and 2 for what is rare
    assert dict(zip(y_test.tolist(), x_test)) == {1: [1, 8, 2], 0: [1, 4, 4, 4, 4]}
    (short, _), _ = tf.keras.datasets.imdb.load_data(num_words=9, maxlen=4)
    assert [list(row) for row in short] == [[1, 6]]
    (home / "imdb_word_index.json").write_text('{"the": 1}')
    assert tf.keras.datasets.imdb.get_word_index() == {"the": 1}
    assert tf.keras.utils.pad_sequences([[1, 2, 3], [4]], maxlen=2).tolist() == [[2, 3], [0, 4]]
    assert tf.keras.utils.pad_sequences([[1], [2, 3]], padding="post", value=9).tolist() == [[1, 9], [2, 3]]


def test_tables(home: Path) -> None:
    np.savez(home / "boston_housing.npz", x=np.arange(20).reshape(10, 2), y=np.arange(10))
    (x, y), (x_test, y_test) = tf.keras.datasets.boston_housing.load_data()
    assert x.shape == (8, 2) and x_test.shape == (2, 2)
    assert sorted([*y.tolist(), *y_test.tolist()]) == [*range(10)] and (x[:, 0] == 2 * y).all()


def test_folders_and_errors_that_are_ignored(tmp_path: Path) -> None:
    data = tf.data.Dataset.range(4).map(lambda x: 6 // (2 - int(x)))
    kept = data.apply(tf.data.experimental.ignore_errors()).apply(tf.data.experimental.snapshot(str(tmp_path / "a")))
    assert [x.numpy() for x in kept] == [x.numpy() for x in kept] == [3, 6, -6]
    kept.save(str(tmp_path / "b"))
    tf.data.experimental.save(kept, str(tmp_path / "c"))
    for found in (tf.data.Dataset.load(str(tmp_path / "b")), tf.data.experimental.load(str(tmp_path / "c"))):
        assert [x.numpy() for x in found] == [3, 6, -6]
        assert found.cardinality().numpy() == 3


def test_datasets_of_hybridflow_stack_what_lists_hold() -> None:
    """Only TensorFlow's take a list for components."""
    assert hf.data.Dataset.range(2).map(lambda x: [x, x + 1]).element_spec.shape == (2,)
    own = tf.data.Dataset.range(2).map(lambda x: [x, x + 1])
    assert isinstance(own.element_spec, tuple) and isinstance(own.batch(2).take(1), tf.data.Dataset)


def test_subclasses_without_elements_are_refused() -> None:
    class Own(tf.data.Dataset):
        pass

    with pytest.raises(hf.errors.ArgumentError, match="defines __iter__"):
        list(Own())
