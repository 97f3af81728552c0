"""What tensors, variables, specs and layers say under TensorFlow's names: its words, recorded from TensorFlow 2.21."""

from __future__ import annotations

import io
import threading
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compat import tf
from hybridflow.core.context import dialect
from hybridflow.errors import ArgumentError, DTypeError, OperandError

WORDS: dict[str, Any] = {
    "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>": lambda: tf.constant(1.0),
    "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>": lambda: tf.constant(
        [[1, 2], [3, 4]]
    ),
    "<tf.Tensor: shape=(1,), dtype=bfloat16, numpy=array([1.5], dtype=bfloat16)>": lambda: tf.constant(
        [1.5], tf.bfloat16
    ),
    "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>": lambda: tf.Variable(
        [1.0, 2.0], name="w"
    ),
    "<tf.Tensor: shape=(), dtype=string, numpy=b'hi'>": lambda: tf.constant("hi"),
    "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'bc'], dtype=object)>": lambda: tf.constant(["a", "bc"]),
    "TensorShape([3])": lambda: tf.ones([2, 3]).shape[1:],
    "TensorShape([])": lambda: tf.ones([]).shape,
    "TensorSpec(shape=(None,), dtype=tf.int32, name=None)": lambda: tf.TensorSpec([None], tf.int32),
    "TensorSpec(shape=(), dtype=tf.int64, name=None)": lambda: tf.data.Dataset.range(3).element_spec,
    "tf.float32": lambda: tf.ones([1]).dtype,
    "<KerasTensor shape=(None, 3), dtype=int32, sparse=False, ragged=False, name=z>": lambda: tf.keras.Input(
        [3], dtype="int32", name="z"
    ),
    "<Dense name=d, built=False>": lambda: tf.keras.layers.Dense(2, name="d"),
    "<Mean name=m>": lambda: tf.keras.metrics.Mean(name="m"),
    "<tf.RaggedTensor [[1, 2], [3]]>": lambda: tf.ragged.constant([[1, 2], [3]]),
    "'/job:localhost/replica:0/task:0/device:CPU:0'": lambda: tf.ones(2).device,
}


@pytest.mark.parametrize("words", WORDS)
def test_repr(words: str) -> None:
    assert repr(WORDS[words]()) == words


def test_str_and_format() -> None:
    assert str(tf.constant([[1.0, 2.0]])) == "tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32)"
    assert str(tf.constant(["a"])) == "tf.Tensor([b'a'], shape=(1,), dtype=string)"
    assert f"{tf.constant(1.5):.3f}" == "1.500" and f"{tf.constant([1, 2])}" == "[1 2]"
    assert str(tf.ones([2, 3]).shape) == "(2, 3)" and str(tf.float32) == "<dtype: 'float32'>"


def test_shapes_compare_with_lists() -> None:
    shape = tf.ones([2, 3]).shape
    assert shape == [2, 3] and shape == (2, 3) and shape != [2] and hash(shape) == hash((2, 3))
    assert shape[:1].as_list() == [2] and (shape + [1]).as_list() == [2, 3, 1]


def test_weights_have_names_of_dtypes() -> None:
    layer = tf.keras.layers.Dense(2, name="d")
    layer(tf.ones([1, 2]))
    assert layer.kernel.dtype == layer.dtype == layer.compute_dtype == "float32" and layer.kernel.path == "d/kernel"
    assert repr(layer.bias) == "<Variable path=d/bias, shape=(2,), dtype=float32, value=[0. 0.]>"


def test_numpys_functions_give_arrays() -> None:
    x = tf.constant([1.0, 2.0])
    assert type(np.square(x)) is np.ndarray and isinstance(np.mean(x), np.floating)
    assert isinstance(np.ones(2) * x, tf.Tensor)
    with tf.GradientTape() as tape:  # what is recorded has a derivative
        tape.watch(x)
        y = tf.reduce_sum(np.sin(x) * x)
    assert np.allclose(tape.gradient(y, x), np.sin(x) + np.cos(x) * x)
    assert isinstance(tf.constant(3).numpy(), np.int32)
    array = x.numpy()
    array[0] = 5.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_dtypes_of_results() -> None:
    assert tf.keras.losses.mse(np.zeros((2, 2)), np.ones((2, 2))).dtype == tf.float64
    assert tf.constant(3 + 4j).dtype == tf.complex128 and tf.ragged.constant([[1], []]).dtype == tf.int32


def test_variables_have_dtypes_of_tensorflow_with_attributes_of_numpys() -> None:
    v = tf.Variable([1.0])
    assert v.dtype.is_floating and v.dtype.as_numpy_dtype is np.float32 and v.dtype.kind == "f"
    assert hf.Variable([1.0]).dtype.itemsize == 4 and tf.ones(1).dtype.itemsize == 4


@pytest.mark.parametrize("kind", ["sequential", "functional", "subclassed"])
def test_training_is_traced_once(kind: str) -> None:
    layers = tf.keras.layers

    class Own(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    i = tf.keras.Input([3])
    model = {
        "sequential": lambda: tf.keras.Sequential([tf.keras.Input([3]), layers.Dense(1)]),
        "functional": lambda: tf.keras.Model([i], [layers.Dense(1)(i)]),
        "subclassed": Own,
    }[kind]()
    model.compile("sgd", "mse")
    x, y = np.ones((8, 3), np.float32), np.ones((8, 1), np.float32)
    model.fit(x, y, batch_size=4, verbose=0)
    with hf.stance("fail_on_retrace"):
        model.fit(x, y, batch_size=4, epochs=2, verbose=0)


def test_functions_return_tensors() -> None:
    out = tf.function(lambda x: x**3)(2)
    assert isinstance(out, tf.Tensor) and out.dtype == tf.int32 and int(out) == 8


def test_configurations_are_as_keras_writes_them() -> None:
    config = tf.keras.layers.Dense(3, name="d").get_config()
    assert config["dtype"]["config"] == {"name": "float32"} and config["dtype"]["class_name"] == "DTypePolicy"
    assert config["kernel_initializer"]["module"] == "keras.initializers"
    assert tf.keras.layers.Dense.from_config(config).units == 3
    model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(1)])
    assert tf.keras.Sequential.from_config(model.get_config()).layers[0].units == 1


def test_one_output_in_a_list() -> None:
    i = tf.keras.Input([2])
    model = tf.keras.Model([i], [tf.keras.layers.Dense(1)(i)])
    assert isinstance(model.predict(np.ones((3, 2)), verbose=0), np.ndarray) and model.output_shape == (None, 1)


def test_without_these_names_nothing_changes() -> None:
    x = hf.asarray([1.0, 2.0])
    dialect.is_tensorflow = False
    try:
        assert repr(x) == "<Tensor f32[2] cpu> [1. 2.]" and x.dtype is np.dtype("float32") and x.device == "cpu"
        assert type(x.shape) is hf.ones(2).shape.__class__ and repr(x.shape) == "(2,)"
        assert (hf.asarray(3) / hf.asarray(2)).dtype == np.float32 and isinstance(np.square(x), hf.Tensor)
    finally:
        dialect.is_tensorflow = True


# ---- pictures and sounds


def test_sounds_come_back() -> None:
    wave_ = np.linspace(-1, 1, 50, dtype="float32")[:, None]
    back, rate = tf.audio.decode_wav(tf.audio.encode_wav(wave_, 8000))
    assert back.shape == (50, 1) and int(rate) == 8000 and np.abs(back.numpy() - wave_).max() < 1e-4
    assert tf.audio.decode_wav(tf.audio.encode_wav(wave_, 8000), desired_samples=60).audio.shape == (60, 1)


@pytest.mark.parametrize("broken", [b"", b"RIFF", b"no wave at all"])
def test_broken_sounds(broken: bytes) -> None:
    with pytest.raises(OperandError, match="no WAV"):
        tf.audio.decode_wav(broken)


def test_sounds_of_eight_bits_are_refused() -> None:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(b"\x00" * 8)
    with pytest.raises(OperandError, match="8 bits"):
        tf.audio.decode_wav(out.getvalue())


def test_pictures_come_back(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    dots = np.arange(12, dtype="uint8").reshape(2, 2, 3) * 20
    assert (tf.io.decode_png(tf.io.encode_png(dots)).numpy() == dots).all()
    assert tf.io.decode_image(tf.io.encode_jpeg(dots), channels=1).shape == (2, 2, 1)
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "0.png").write_bytes(tf.io.encode_png(np.full((4, 6, 3), 100, "uint8")).numpy())
    data = tf.keras.utils.image_dataset_from_directory(tmp_path, image_size=(2, 3), shuffle=False)
    images, labels = next(iter(data))
    assert images.numpy().tolist() == np.full((2, 2, 3, 3), 100.0).tolist() and labels.numpy().tolist() == [0, 1]
    with pytest.raises(OperandError, match="no picture"):
        tf.io.decode_png(b"\x89PNG broken")


def test_files_of_pictures_and_sounds_in_functions() -> None:
    """Sizes are found when the function runs."""
    sounds = [tf.audio.encode_wav(np.full((count, 1), 0.25, "float32"), 8000) for count in (2, 3)]
    decode = tf.function(tf.audio.decode_wav)
    for sound, count in zip(sounds, (2, 3)):
        result = decode(sound)
        assert result.audio.numpy().tolist() == [[0.25]] * count and result.sample_rate.numpy() == 8000
    pytest.importorskip("PIL")

    @tf.function
    def half(contents: Any) -> Any:
        image = tf.io.decode_image(contents, channels=3, expand_animations=False)
        return tf.io.encode_png(image // 2), tf.shape(image)

    for height in (2, 3):
        dots = np.arange(6 * height, dtype="uint8").reshape(height, 2, 3) * 9
        png, shape = half(tf.io.encode_png(dots))
        assert (tf.io.decode_png(png).numpy() == dots // 2).all() and shape.numpy().tolist() == [height, 2, 3]
    assert tf.io.decode_png(png, channels=1).numpy()[0].tolist() == [[3], [16]]  # rounded down
    assert tf.io.extract_jpeg_shape(tf.io.encode_jpeg(dots)).numpy().tolist() == [3, 2, 3]
    files = tf.data.Dataset.from_tensor_slices([png.numpy()] * 2)
    assert [x.shape for x in files.map(lambda file: tf.io.decode_png(file, channels=1))] == [(3, 2, 1)] * 2


def test_generator_of_pictures() -> None:
    make = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255, horizontal_flip=True, rotation_range=20)
    flow = make.flow(np.full((5, 4, 4, 3), 255.0), np.arange(5), batch_size=2, shuffle=False)
    images, labels = next(flow)
    assert np.allclose(images, 1.0) and labels.tolist() == [0, 1] and len(flow) == 3
    with pytest.raises(ArgumentError, match="zca"):
        tf.keras.preprocessing.image.ImageDataGenerator(zca_whitening=True)


# ---- others


def test_sets_and_queues() -> None:
    queue = tf.queue.FIFOQueue(3, [tf.int32], shapes=[()])
    queue.enqueue_many([[10, 11]])
    assert int(queue.size()) == 2 and int(queue.dequeue()) == 10
    queue.close()
    with pytest.raises(tf.errors.OutOfRangeError):
        queue.dequeue_many(2)
    assert queue.dequeue_up_to(2).numpy().tolist() == [11]
    with pytest.raises(tf.errors.OutOfRangeError):
        queue.dequeue()
    with pytest.raises(ArgumentError, match="closed"):
        queue.enqueue(1)
    both = tf.sets.intersection(tf.constant([[1, 5, 9]]), tf.constant([[5, 6]]))
    assert tf.sparse.to_dense(both).numpy().tolist() == [[5]]


def test_queues_take_elements_of_their_dtype() -> None:
    queue = tf.queue.FIFOQueue(3, [tf.int32])
    for wrong in (tf.constant(1.0), 1.5, tf.constant(1, tf.int64)):
        with pytest.raises(DTypeError, match="int32"):
            queue.enqueue(wrong)
    queue.enqueue(7)
    assert queue.dequeue().dtype == tf.int32


def test_queues_wait_for_other_threads() -> None:
    queue = tf.queue.FIFOQueue(1, [tf.int32])

    def fill() -> None:
        for k in range(5):
            queue.enqueue(k)
        queue.close()

    other = threading.Thread(target=fill)
    other.start()
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(int(queue.dequeue()))
    other.join()
    assert found == [0, 1, 2, 3, 4]


def test_queues_do_not_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    queue = tf.queue.RandomShuffleQueue(2, 1, [tf.int32])
    with pytest.raises(ArgumentError, match="no other thread"):
        queue.dequeue()
    queue.enqueue_many([[1, 2]])
    with pytest.raises(ArgumentError, match="full"):
        queue.enqueue(3)
    assert int(queue.dequeue()) in (1, 2)
    with pytest.raises(ArgumentError, match="1 stay"):
        queue.dequeue()


def test_rows_of_tensors() -> None:
    r = tf.ragged.constant([[1, 2], [], [3]])
    assert tf.reduce_sum(r, axis=1).numpy().tolist() == [3, 0, 3]
    assert tf.concat([r, r], axis=1).to_list() == [[1, 2, 1, 2], [], [3, 3]]
    assert tf.concat([r, r], axis=0).to_list() == [[1, 2], [], [3]] * 2


def test_generators_without_shapes() -> None:
    data = tf.data.Dataset.from_generator(lambda: iter([([0.5], 1), ([1.0, 2.0], 2)]), (tf.float32, tf.int32))
    assert [x.shape.as_list() for x, _ in data] == [[1], [2]] and data.element_spec[0].shape.rank is None


def test_arrays_that_are_read_once() -> None:
    array = tf.TensorArray(tf.float32, size=2).unstack([[1.0], [2.0]])
    assert array.read(1).numpy().tolist() == [2.0] and array.stack().numpy().tolist() == [[1.0], [0.0]]
    with pytest.raises(ArgumentError, match="Could not read index 1 twice"):
        array.read(1)
    array = array.write(1, [3.0])
    assert array.read(1).numpy().tolist() == [3.0] and array.read(0).numpy().tolist() == [1.0]


def test_shapes_in_functions_are_tensors() -> None:
    @tf.function
    def which(x: Any) -> Any:
        return tf.constant(1) if tf.reduce_all(tf.shape(x) == [2, 3]) else tf.constant(0)

    @tf.function
    def several(x: Any) -> Any:
        shape = tf.shape(x)
        return shape[0], shape != [2, 3], shape < 3, 12 // shape, shape**2, 2**shape

    for n in (2, 4, 5):
        shape = np.array([n, 3], "int32")
        assert int(which(tf.ones([n, 3]))) == (n == 2)
        expected = [np.int32(n), shape != [2, 3], shape < 3, 12 // shape, shape**2, 2**shape]
        for one, other in zip(several(tf.ones([n, 3])), expected):
            assert isinstance(one, tf.Tensor) and one.numpy().dtype == other.dtype and np.array_equal(one, other)


def test_samples_of_sound_and_opaque_pixels() -> None:
    data = tf.audio.encode_wav([[0.5], [-1.0], [1.0], [1.5 / 32768], [-2.5 / 32768]], 8000)
    assert np.frombuffer(data.numpy()[-10:], "<i2").tolist() == [16384, -32768, 32767, 2, -3]
    pytest.importorskip("PIL")
    png = tf.io.encode_png(np.array([[[7], [300]]], "uint16"))
    assert tf.io.decode_png(png, 4, tf.uint16).numpy().tolist() == [[[7, 7, 7, 65535], [300, 300, 300, 65535]]]
