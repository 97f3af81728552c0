"""Small programs of TensorFlow, each of one thing that programs need beside the computing."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridflow.compat import tf
from hybridflow.errors import DataError, DeviceError

PROGRAMS = {
    "texts and bytes": """
assert tf.compat.as_bytes("abc") == b"abc" and tf.compat.as_text(b"abc") == "abc" and tf.compat.as_str(b"x") == "x"
assert tf.compat.as_str_any(3) == "3"
""",
    "keras has a version": """
assert tf.keras.__version__[0] == "3" and tf.keras.version == tf.keras.__version__
""",
    "accuracy of labels that are bools": """
metric = tf.keras.metrics.CategoricalAccuracy()
metric.update_state(np.eye(2, dtype=bool), [[0.9, 0.1], [0.8, 0.2]])
assert float(metric.result()) == 0.5
""",
    "train_step with compiled_loss": """
class Mine(tf.keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compiled_loss(y, self(x, training=True))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        self.compiled_metrics.update_state(y, y)
        return {m.name: m.result() for m in self.metrics} | {"mine": loss}
i = tf.keras.Input([1])
m = Mine(i, tf.keras.layers.Dense(1, kernel_initializer="zeros")(i))
m.compile("sgd", "mse", metrics=["mae"])
assert abs(float(m.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0).history["mine"][0]) - 1.0) < 1e-6
""",
    "an array as first values": """
layer = tf.keras.layers.Dense(
    4, kernel_initializer="zeros", bias_initializer=tf.keras.initializers.Constant(np.eye(2).flatten())
)
assert layer(tf.ones([1, 2])).numpy().reshape(2, 2).tolist() == np.eye(2).tolist()
assert tf.constant_initializer([1.0, 2.0])(shape=[2], dtype=tf.float32).numpy().tolist() == [1.0, 2.0]
""",
    "functions and classes as initializers": """
layer = tf.keras.layers.Dense(2, kernel_initializer=tf.random.normal, bias_initializer=tf.zeros)
assert layer(tf.ones([1, 3])).shape == (1, 2)
other = tf.keras.layers.Dense(2, kernel_initializer=tf.initializers.RandomNormal)
assert other(tf.ones([1, 3])).shape == (1, 2)
own = tf.keras.layers.Dense(2, kernel_initializer=lambda shape, dtype=None: tf.ones(shape, dtype))
assert own(tf.ones([1, 3])).numpy().tolist() == [[3.0, 3.0]]
""",
    "a custom gradient of a variable": """
@tf.custom_gradient
def softplus(z):
    return tf.math.log(1 + tf.exp(z)), lambda g: g * (1 - 1 / (1 + tf.exp(z)))
x = tf.Variable([0.0])
with tf.GradientTape() as tape:
    y = softplus(x)
assert tape.gradient(y, [x])[0].numpy().tolist() == [0.5]
""",
    "dtypes by number": """
assert tf.zeros(1, 1).dtype == tf.float32 and tf.ones([2], 9).dtype == tf.int64
assert tf.as_dtype(3) == tf.int32 and tf.float32.as_datatype_enum == 1 and tf.as_dtype("string") is tf.string
""",
    "old keywords": """
assert tf.keras.layers.Embedding(50, 8, input_length=5)(tf.zeros([2, 5], tf.int32)).shape == (2, 5, 8)
assert np.allclose(tf.keras.layers.LeakyReLU(alpha=0.2)(tf.constant([-1.0, 2.0])), [-0.2, 2.0])
for kind in ("SGD", "Adam", "RMSprop"):
    assert float(getattr(tf.keras.optimizers, kind)(lr=0.5).learning_rate) == 0.5
class Mine(tf.keras.optimizers.Adam):
    pass
assert isinstance(Mine(0.1), tf.keras.optimizers.Adam)
""",
    "statistics of Normalization": """
layer = tf.keras.layers.Normalization(axis=-1)
layer.adapt(np.array([[1.0, 10.0], [3.0, 30.0]]))
assert layer.mean.numpy().tolist() == [[2.0, 20.0]] and layer.variance.numpy().tolist() == [[1.0, 100.0]]
""",
    "NumPy's functions in float32": """
tnp = tf.experimental.numpy
tnp.experimental_enable_numpy_behavior(prefer_float32=True)
try:
    x = tnp.array([1.5, 2.0])
    assert isinstance(x, tf.Tensor) and x.dtype == tf.float32
    assert tnp.array(np.array([1.5])).dtype == tf.float64 and tnp.ones(2, dtype=tf.float64).dtype == tf.float64
finally:
    tnp.experimental_enable_numpy_behavior()
assert tnp.array([1.5]).dtype == tf.float64
""",
    "one_hot of floats": """
assert tf.one_hot(np.array([1, 0], "float32"), depth=2).numpy().tolist() == [[0, 1], [1, 0]]
""",
    "options of records": """
options = tf.io.TFRecordOptions(compression_type="GZIP")
with tf.io.TFRecordWriter(str(folder / "a"), options) as writer:
    writer.write(b"one")
assert [item.numpy() for item in tf.data.TFRecordDataset([str(folder / "a")], compression_type="GZIP")] == [b"one"]
""",
    "tensors as bytes": """
for value in ([[1.5, 2.0]], [], 3.0):
    text = tf.io.serialize_tensor(tf.constant(value))
    assert text.dtype == tf.string and isinstance(text.numpy(), bytes)
    assert tf.io.parse_tensor(text, out_type=tf.float32).numpy().tolist() == value
""",
    "shapes of no known rank": """
unknown = tf.TensorShape(None)
assert unknown.rank is None and not unknown and unknown.is_compatible_with([1, 2]) and str(unknown) == "<unknown>"
assert unknown != tf.TensorShape([]) and tf.TensorShape(None) == unknown
assert tf.TensorShape([None, 2]).as_list() == [None, 2]
""",
    "references": """
v, c = tf.Variable(0.0), tf.constant(2.0)
found = {v.ref(): "v", c.ref(): "c"}
assert found[v.ref()] == "v" and v.ref().deref() is v and len(found) == 2
""",
    "masks of tensors": """
out = tf.keras.layers.Embedding(10, 4, mask_zero=True)(np.array([[7, 3, 0], [1, 0, 0]]))
assert out._keras_mask.numpy().tolist() == [[True, True, False], [True, False, False]]
assert tf.constant(1.0)._keras_mask is None
""",
    "masks through layers": """
class Count(tf.keras.layers.Layer):
    def call(self, x, mask=None):
        assert mask is not None
        return tf.reduce_sum(tf.cast(mask, tf.float32), axis=1)
ids = tf.keras.Input([None], dtype="int32")
x = tf.keras.layers.Embedding(10, 4, mask_zero=True)(ids)
x = tf.keras.layers.Dropout(0.5)(tf.keras.layers.Dense(2)(x))
model = tf.keras.Model(ids, Count()(x))
assert model(np.array([[3, 1, 0], [5, 0, 0]])).numpy().tolist() == [2.0, 1.0]
""",
    "messages of records": """
feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.5]))
text = feature.SerializeToString()
assert tf.train.Feature.FromString(text).float_list.value[0] == 1.5
e = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
again = tf.train.Example()
again.ParseFromString(e.SerializeToString())
assert list(again.features.feature["a"].float_list.value) == [1.5] and again == e
assert tf.train.Feature().SerializeToString() == b"" and tf.train.Feature.FromString(b"") == tf.train.Feature()
""",
    "texts of methods of datasets": """
for name in ("map", "filter", "batch", "shuffle", "interleave", "window", "cache", "take"):
    assert getattr(tf.data.Dataset, name).__doc__.strip(), name
""",
    "errors of signatures": """
@tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
def f(x):
    return x[:, 0]
assert f(tf.ones([3, 2])).shape == (3,)
for wrong in (tf.ones([3, 4]), tf.ones([2], tf.float32), tf.ones([1, 2], tf.int32)):
    with pytest.raises(TypeError):
        f(wrong)
""",
}


@pytest.mark.code
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    scope: dict[str, Any] = {"tf": tf, "np": np, "pytest": pytest, "folder": tmp_path}
    path = tmp_path / "program.py"
    path.write_text(PROGRAMS[name], encoding="utf-8")
    exec(compile(PROGRAMS[name], str(path), "exec"), scope)


def test_files_are_brought_once_and_unpacked(tmp_path: Path) -> None:
    words, packed = tmp_path / "words.txt", tmp_path / "poems.zip"
    words.write_text("one two")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("poems/one.txt", "roses are red")
    get = tf.keras.utils.get_file
    path = get("w.txt", origin=words.as_uri(), cache_dir=tmp_path / "home")
    assert path == str(tmp_path / "home" / "datasets" / "w.txt") and Path(path).read_text() == "one two"
    words.write_text("three")
    assert Path(get("w.txt", origin=words.as_uri(), cache_dir=tmp_path / "home")).read_text() == "one two"
    again = get("w.txt", origin=words.as_uri(), cache_dir=tmp_path / "home", force_download=True)
    assert Path(again).read_text() == "three"
    folder = get(origin=packed.as_uri(), cache_dir=tmp_path / "home", extract=True)
    assert (Path(folder) / "poems" / "one.txt").read_text() == "roses are red"


def test_files_that_are_not_what_is_meant_are_refused(tmp_path: Path) -> None:
    words, packed = tmp_path / "words.txt", tmp_path / "bad.zip"
    words.write_text("one two")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../out.txt", "here")
    get, home = tf.keras.utils.get_file, tmp_path / "home"
    with pytest.raises(DataError, match="another hash"):
        get("w.txt", origin=words.as_uri(), cache_dir=home, file_hash="0" * 64)
    with pytest.raises(DataError, match="leave its folder"):
        get(origin=packed.as_uri(), cache_dir=home, extract=True)
    with pytest.raises(DataError, match="no zip"):
        get("w.txt", origin=words.as_uri(), cache_dir=home, extract=True)
    with pytest.raises(FileNotFoundError, match="by hand"):
        get("n.txt", origin=(tmp_path / "none").as_uri(), cache_dir=home)
    left = sorted(path.name for path in (home / "datasets").iterdir())
    assert left == ["bad.zip", "w.txt"] and not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    "text", [b"", b"\x08", b"\x08\x01", b"\x08\x03\x22\x04abcd", b"\xff" * 12, b"\x08\x01\x22\x03abc"]
)
def test_bytes_that_are_no_tensor_are_refused(text: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_tensor(text, tf.float32)


def test_losses_are_float32() -> None:
    zeros, ones = np.zeros(2), np.ones(2)
    assert tf.keras.losses.MeanSquaredError()(zeros, ones).dtype == tf.float32
    assert tf.keras.losses.MeanSquaredError(dtype="float64")(zeros, ones).dtype == tf.float64


def test_arrays_of_a_dtype_are_tensors() -> None:
    for x in (tf.experimental.numpy.ones([2], tf.float32), tf.experimental.numpy.zeros([2], tf.int64)):
        assert tf.is_tensor(x)


def test_pictures_are_scaled_in_the_making_of_a_model() -> None:
    pictures = tf.keras.Input((4, 4, 3))
    model = tf.keras.Model(pictures, tf.keras.applications.vgg16.preprocess_input(pictures))
    x = np.full((1, 4, 4, 3), 200.0, np.float32)
    np.testing.assert_array_equal(model(x), tf.keras.applications.vgg16.preprocess_input(x))


def test_what_concrete_functions_say_of_themselves() -> None:
    concrete = tf.function(lambda x: x * 2).get_concrete_function(tf.TensorSpec([None], tf.float32))
    spec = "TensorSpec(shape=(None,), dtype=tf.float32, name="
    assert str(concrete.function_type) == f"(x: {spec}'x')) -> {spec}None)"
    assert concrete.inference_fn(tf.constant([2.0])).numpy().tolist() == [4.0]


def test_strategies_of_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync == 1
    assert tf.distribute.experimental.CentralStorageStrategy().num_replicas_in_sync == 1
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}}')
    with pytest.raises(DeviceError, match="2 workers"):
        tf.distribute.MultiWorkerMirroredStrategy()


def test_settings_of_keras_and_of_the_optimizer() -> None:
    tf.keras.config.disable_traceback_filtering()
    assert tf.keras.config.floatx() == "float32" and tf.keras.config.backend() == tf.keras.backend.backend()
    assert tf.keras.config.dtype_policy().name == "float32"
    tf.config.optimizer.set_experimental_options({"constant_folding": True})
    assert tf.config.optimizer.get_experimental_options()["constant_folding"] is True
    assert next(iter(tf.data.Dataset.range(3))).numpy() == iter(tf.data.Dataset.range(3)).next().numpy() == 0


def test_a_summary_says_what_is_trained() -> None:
    inner = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3, name="one")])
    model = tf.keras.Sequential([tf.keras.Input((2,)), inner, tf.keras.layers.Dense(1, name="two")])
    inner.trainable = False
    lines: list[str] = []
    model.summary(show_trainable=True, expand_nested=True, print_fn=lines.append)
    ends = {line.split()[0]: line.split()[-1] for line in lines[0].splitlines() if " (" in line}
    assert ends["Layer"] == "Trainable" and (ends["one"], ends["two"]) == ("N", "Y")


def test_optionals_of_iterators_in_functions() -> None:
    @tf.function
    def total(elements: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for _ in tf.range(5):
            one = elements.get_next_as_optional()
            if not one.has_value():
                break
            result += one.get_value()
        return result

    elements = iter(tf.data.Dataset.range(4))
    assert int(elements.get_next_as_optional().get_value()) == 0
    assert int(total(elements)) == 6
    last = elements.get_next_as_optional()
    assert not last.has_value()
    with pytest.raises(ValueError, match="no value"):
        last.get_value()


def test_masks_of_symbols() -> None:
    inputs = tf.keras.Input((None,), dtype="int32")
    x = tf.keras.layers.Embedding(9, 4, mask_zero=True)(inputs)
    assert x._keras_mask.dtype == tf.bool and tuple(x._keras_mask.shape) == (None, None)
    model = tf.keras.Model(inputs, x._keras_mask)
    assert model(tf.constant([[1, 0, 2]])).numpy().tolist() == [[True, False, True]]
    assert tf.keras.Input((3,))._keras_mask is None


def test_functions_that_were_not_called_are_left_out_of_saved_modules(tmp_path: Path) -> None:
    class Scale(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = tf.Variable(2.0)

        @tf.function
        def f(self, x: Any) -> Any:
            return x * self.v

        @tf.function
        def g(self, x: Any) -> Any:
            return x

    module = Scale()
    module.f(tf.constant(1.0))
    tf.saved_model.save(module, tmp_path / "scale")
    loaded = tf.saved_model.load(tmp_path / "scale")
    assert float(loaded.f(tf.constant(3.0))) == 6.0 and not hasattr(loaded, "g")

    class Model(tf.keras.Model):
        pass

    tf.saved_model.save(Model(), tmp_path / "model")
    assert not tf.saved_model.load(tmp_path / "model").signatures
    with pytest.raises(ValueError, match="is a folder"):
        tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)]).save(tmp_path)


def test_columns_of_objects_are_texts() -> None:
    class Series:
        """What a column of a table of pandas says of itself."""

        dtype = np.dtype(object)

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array(["m", "f"], object)

    assert tf.constant(Series()).numpy().tolist() == tf.convert_to_tensor(Series()).numpy().tolist() == [b"m", b"f"]
    inputs = {"sex": tf.keras.Input((), name="sex", dtype="string")}
    model = tf.keras.Model(inputs, tf.keras.layers.StringLookup(vocabulary=["m", "f"])(inputs["sex"]))
    assert model({"sex": Series()}).numpy().tolist() == [1, 2]


def test_no_rows_and_no_numbers() -> None:
    layer = tf.keras.layers.Normalization()
    with pytest.warns(UserWarning, match="the data are empty"):
        layer.adapt(np.zeros((0, 3), "f4"))
    assert np.isnan(layer(tf.ones((2, 3)))).all()
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    for use in (lambda: sparse + 42.0, lambda: 42.0 + sparse, lambda: sparse - 1, lambda: 1 - sparse):
        with pytest.raises(TypeError):
            use()


def test_checkpoints_restore_what_is_given_later(tmp_path: Path) -> None:
    """In lists and dicts too, and under each of the paths that a variable has."""
    saved = tf.train.Checkpoint()
    saved.listed = [tf.Variable(1.0)]
    saved.listed.append(tf.Variable(2.0))
    saved.mapped = {"one": saved.listed[0]}
    saved.mapped["two"] = saved.listed[1]
    path = saved.save(tmp_path / "some")
    other, two, one = tf.train.Checkpoint(), tf.Variable(0.0), tf.Variable(0.0)
    other.mapped = {"two": two}
    status = other.restore(path)
    assert float(two) == 2.0
    with pytest.raises(ValueError, match="not everything was restored"):
        status.assert_consumed()
    other.listed = []
    assert repr(other.listed) == "ListWrapper([])"
    other.listed.append(one)
    assert float(one) == 1.0 and other.listed[0] is one


def test_what_tensorflow_has_no_gradient_of() -> None:
    image, factor = tf.Variable([[[0.5, 0.2, 0.1], [0.1, 0.3, 0.9]]]), tf.Variable(0.5)
    for name in ("contrast", "hue", "saturation"):
        adjust = getattr(tf.image, f"adjust_{name}")
        plain = adjust(image, factor)
        with tf.GradientTape() as tape:
            adjusted = adjust(image, factor)
        assert adjusted.numpy().tolist() == plain.numpy().tolist()
        with pytest.raises(LookupError, match=f"gradient registry has no entry for: Adjust{name.title()}"):
            tape.gradient(adjusted, [image, factor])


def test_initializers_of_none_and_pools_over_channels() -> None:
    layer = tf.keras.layers.Dense(2, bias_initializer=None)
    layer.build((None, 3))
    assert layer.bias.shape == (2,) and np.isfinite(layer.bias.numpy()).all()
    x = tf.reshape(tf.range(12, dtype=tf.float32), (1, 1, 2, 6))
    found = tf.nn.max_pool(x, ksize=(1, 1, 1, 3), strides=(1, 1, 1, 3), padding="VALID")
    assert found.numpy().tolist() == [[[[2.0, 5.0], [8.0, 11.0]]]]
    with pytest.raises(ValueError, match="over channels"):
        tf.nn.max_pool(x, ksize=(1, 1, 1, 4), strides=(1, 1, 1, 4), padding="VALID")
