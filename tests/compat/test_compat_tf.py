"""``hybridflow.compat.tf``: its names, what it says of those that are not there, and arguments."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from hybridflow.compat.tf import names
from hybridflow.core import pytree
from tests.support.paths import ROOT


@pytest.mark.parametrize("room", sorted(names.rooms()))
def test_names_of_a_room(room: str) -> None:
    module = importlib.import_module(names.TF if room == "." else f"{names.TF}.{room}")
    listed = dir(module)
    assert listed == sorted(module.__all__)
    for name in names.rooms()[room]:
        assert name in listed
        assert getattr(module, name) is names.function_of(name if room == "." else f"{room}.{name}")


MISSING = {
    "reduce_su": "there is no tf.reduce_su here; did you mean tf.reduce_sum?",
    "log": "there is no tf.log here; write tf.math.log.",
    "nn.rellu": "there is no tf.nn.rellu here; did you mean tf.nn.relu?",
    "keras.layers.Dens": "there is no tf.keras.layers.Dens here; did you mean tf.keras.layers.Dense?",
    "placeholder": "there is no tf.placeholder here: TensorFlow 1's; it is tf.compat.v1.placeholder.",
    "keras.applications.NASNetMobile": "there is no tf.keras.applications.NASNetMobile here: write tf.keras",
    "keras.datasetz.mnist": "there is no tf.keras.datasetz here",
    "nn.ctc_beam_search_decoder": "there is no tf.nn.ctc_beam_search_decoder here: nothing decodes",
    "qqqqqq": "there is no tf.qqqqqq here, nor a name like it in tf.",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_name(name: str) -> None:
    found: object = tf
    with pytest.raises(AttributeError) as error:
        for part in name.split("."):
            found = getattr(found, part)
    assert str(error.value).startswith(MISSING[name])


def test_ways_to_import() -> None:
    source = (
        "from hybridflow.compat import tf\n"
        "from hybridflow.compat.tf import keras\n"
        "from hybridflow.compat.tf.keras import layers, models\n"
        "from hybridflow.compat.tf.keras.layers import Dense\n"
        "import hybridflow.compat.tf.keras.optimizers.schedules as schedules\n"
        "import hybridflow as hf\n"
        "assert hf.compat.tf is tf and tf.keras is keras and layers.Dense is Dense is hf.layers.Dense\n"
        "assert schedules.CosineDecay is hf.optimizers.schedules.CosineDecay\n"
        "from hybridflow.compat.tf.nn import *\n"
        "print(relu(-1.0).numpy())\n"
    )
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "0.0\n", done.stderr


def test_the_package_itself_does_without() -> None:
    source = "import sys, hybridflow as hf; hf.function; print([n for n in sys.modules if 'compat.' in n])"
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_arguments_are_checked() -> None:
    assert tf.nn.relu(features=[-1.0], name="r").numpy() == [0.0]
    for call in (
        lambda: tf.exp(),
        lambda: tf.exp(1.0, 2.0),
        lambda: tf.exp(x=1.0, y=2.0),
        lambda: tf.add(1.0, 2.0, x=3.0),
    ):
        with pytest.raises(TypeError):
            call()


def test_operands_take_the_dtype_of_a_tensor() -> None:
    x = tf.constant([1.0, 2.0])
    assert tf.add(x, np.array([1.0, 2.0])).dtype == tf.float32
    assert tf.add(x, [1, 2]).dtype == tf.float32
    assert tf.add([1, 2], 3).dtype == tf.int32
    assert tf.add(tf.constant([1], tf.int64), [2]).dtype == tf.int64
    assert tf.maximum(x.numpy().astype(np.float64), 1.0).dtype == tf.float64


def test_dtypes_stand_for_dtypes() -> None:
    for dtype in (tf.float16, tf.bfloat16, tf.int8, tf.uint64, tf.bool, tf.complex64):
        assert hf.zeros((2,), dtype=dtype).dtype == dtype == dtype.name
        assert tf.as_dtype(dtype.dtype) is dtype
        assert hash(dtype) == hash(dtype.dtype) and repr(dtype) == f"tf.{dtype.name}"
    assert tf.float32 != tf.float64 and tf.float32 is not None and tf.float32 != 3
    with pytest.raises(TypeError):
        tf.as_dtype("complex256")
    assert tf.complex128.real_dtype is tf.float64 and tf.complex64.is_complex and not tf.complex64.is_floating
    z = tf.complex([3.0], [-4.0])
    assert z.dtype == tf.complex64 and tf.abs(z).numpy().tolist() == [5.0] and tf.math.imag(z).numpy().tolist() == [-4]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("/CPU:0", "cpu"),
        ("cpu", "cpu"),
        ("/device:GPU:1", "gpu:1"),
        ("/gpu:0", "gpu:0"),
        ("GPU", "gpu:0"),
        ("/job:localhost/replica:0/task:0/device:GPU:2", "gpu:2"),
    ],
)
def test_device_names(name: str, wanted: str) -> None:
    from hybridflow.compat.adapters import settings

    assert settings.device_of(name) == wanted


def test_devices_that_are_not_there() -> None:
    with pytest.raises(hf.errors.DeviceError):
        tf.device("/TPU:0")
    with tf.device("/GPU:7"):
        assert tf.ones(2).device.endswith("CPU:0")
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(hf.errors.DeviceError):
            tf.device("/GPU:7")
    finally:
        tf.config.set_soft_device_placement(True)


def test_a_tensor_array_that_grows_needs_to_know_where() -> None:
    @tf.function
    def squares(n):  # type: ignore[no-untyped-def]
        found = tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[])
        for i in tf.range(n):
            found = found.write(i, i * i)
        return found.stack()

    with pytest.raises(hf.errors.TraceError, match="Give TensorArray its size"):
        squares(tf.constant(3))
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    assert found.write(2, 5.0).stack().numpy().tolist() == [0.0, 0.0, 5.0]


def test_seeds_of_ops_make_streams_of_their_own() -> None:
    def draw() -> list[object]:
        return [tf.random.normal([3], seed=7).numpy().tolist() for _ in range(2)]

    tf.random.set_seed(1)
    first = draw()
    tf.random.set_seed(1)
    assert draw() == first and first[0] != first[1]
    step = tf.function(lambda: tf.random.uniform([2], seed=3))
    tf.random.set_seed(1)
    made = [step().numpy().tolist() for _ in range(2)]
    assert made[0] != made[1]


def test_resize_with_pad_keeps_the_ratio() -> None:
    x = np.arange(1.0, 13).reshape(2, 6, 1).astype("f4")
    found = tf.image.resize_with_pad(x, 4, 3).numpy()[..., 0]  # of 2 x 6 there are 1 x 3
    np.testing.assert_array_equal(found[[0, 2, 3]], 0)
    np.testing.assert_array_equal(found[1], tf.image.resize(x, (1, 3)).numpy()[0, :, 0])
    assert tf.image.resize_with_pad(x[None], 9, 7, method="nearest").shape == (1, 9, 7, 1)
    above = tf.image.resize_with_pad(np.ones((7, 10, 1), "f4"), 11, 7).numpy()[:, 0, 0]
    np.testing.assert_array_equal(above, [0] * 3 + [1] * 4 + [0] * 4)  # 4.9 rows: 3 above, as of what is exact


def test_arguments_of_keras_have_its_defaults_and_places() -> None:
    penalty = tf.keras.regularizers.l1_l2()
    assert (penalty.l1, penalty.l2) == (0.0, 0.0)
    assert tf.keras.regularizers.l1_l2(0.1, l2=0.2).l2 == 0.2

    class Own(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return 2 * x

    model = tf.keras.Sequential([tf.keras.Input(batch_shape=(2, 3)), Own()])
    text = model.to_json()
    with tf.keras.utils.CustomObjectScope(custom_objects={"Own": Own}):
        assert tf.keras.models.model_from_json(text)(np.ones((2, 3), "f4")).numpy().sum() == 12
    with tf.keras.utils.custom_object_scope({"Own": Own}):
        tf.keras.models.model_from_json(text)
    seen: list[Any] = []

    def cloned(layer: Any) -> Any:
        seen.append(layer)
        return type(layer).from_config(layer.get_config())

    assert tf.keras.models.clone_model(model, None, cloned).layers and seen
    with pytest.raises(ValueError, match="input_tensors is given"):
        tf.keras.models.clone_model(model, [1.0])


def test_inputs_of_a_whole_batch() -> None:
    symbol = tf.keras.Input(batch_shape=(4, None, 2))
    assert symbol.shape == (4, None, 2) == tf.keras.layers.Input((None, 2), 4).shape
    with pytest.raises(ValueError, match="give batch_shape, or shape and batch_size"):
        tf.keras.Input((2,), batch_shape=(4, 2))
    with pytest.raises(ValueError, match="ragged inputs"):
        tf.keras.Input((2,), ragged=True)


def test_no_boxes_suppress_none() -> None:
    none = tf.zeros((0, 4))
    places, count = tf.image.non_max_suppression_padded(none, tf.zeros((0,)), 3, pad_to_max_output_size=True)
    assert places.numpy().tolist() == [0, 0, 0] and int(count) == 0
    assert tf.image.non_max_suppression(none, tf.zeros((0,)), 3).shape == (0,)


def test_channels_come_last_where_nothing_else_is_done() -> None:
    x = tf.zeros((1, 4, 4, 4))
    for call in (
        lambda: tf.nn.space_to_depth(x, 2, data_format="NCHW"),
        lambda: tf.nn.depth_to_space(x, 2, data_format="NCHW"),
        lambda: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", data_format="NCHW"),
        lambda: tf.nn.erosion2d(x, x[0, :2, :2], [1, 1, 1, 1], "SAME", "NCHW", [1, 1, 1, 1]),
    ):
        with pytest.raises(ValueError, match="data_format is 'NCHW'"):
            call()


def test_pictures_are_cut_to_keep_their_ratio(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    x = np.arange(24, dtype=np.uint8).reshape(4, 6)
    image.fromarray(x).save(tmp_path / "x.png")
    load = tf.keras.utils.load_img
    found = load(tmp_path / "x.png", "grayscale", (4, 4), keep_aspect_ratio=True)
    assert np.array_equal(np.asarray(found), x[:, 1:5])
    assert load(tmp_path / "x.png", "grayscale", (2, 6), keep_aspect_ratio=True).size == (6, 2)
    with pytest.raises(ValueError, match="color_mode"):
        load(tmp_path / "x.png", "gray")


N = hf.asarray([1, 2, 3])
SIZES_OF_VALUES: dict[str, tuple[Any, str]] = {
    "sequence_mask": (lambda n: tf.sequence_mask(n), "Give maxlen"),
    "math.bincount": (lambda n: tf.math.bincount(n), "Give minlength and maxlength alike"),
    "dynamic_stitch": (lambda n: tf.dynamic_stitch([n], [n]), "Give the indices as lists or arrays"),
    "math.confusion_matrix": (lambda n: tf.math.confusion_matrix(n, n), "Give num_classes"),
    "math.segment": (lambda n: tf.math.segment_sum(n, n), "unsorted segments"),
    "image.non_max_suppression": (
        lambda n: tf.image.non_max_suppression(tf.ones((3, 4)), tf.cast(n, tf.float32), 2),
        "pad_to_max_output_size",
    ),
    "one_hot": (lambda n: tf.one_hot([1], n[0]), "Make it a Python argument"),
    "top_k": (lambda n: tf.math.top_k(n, n[0]), "Make it a Python argument"),
    "reduce_sum": (lambda n: tf.reduce_sum(n, axis=n[0] - 1), "Make it a Python argument"),
    "slice": (lambda n: tf.slice(n, [0], [n[0]]), "Make it a Python argument"),
    "roll": (lambda n: tf.roll(n, n[0], 0), "Make it a Python argument"),
}


@pytest.mark.parametrize("name", SIZES_OF_VALUES)
def test_what_values_decide_is_said_of_the_function_that_was_called(name: str) -> None:
    function, remedy = SIZES_OF_VALUES[name]
    assert hf.compat.v1  # which wraps them: that is no name to tell
    function(N)
    with pytest.raises(hf.errors.TraceError, match=rf"^\[{name}\] .*do(es)? not exist while tracing\..*{remedy}"):
        hf.function(function, strict=True).get_concrete_function(N)


def test_sizes_that_do_not_depend_on_values_are_known_in_functions() -> None:
    functions = {
        "bincount": lambda n: tf.math.bincount(n, minlength=4, maxlength=4),
        "sequence_mask": lambda n: tf.sequence_mask([1, 3]),
        "sequence_mask of what is captured": lambda n: tf.sequence_mask(N[:]),
        "dynamic_stitch": lambda n: tf.dynamic_stitch([[0, 2], np.array([1])], [n[:2], n[2:]]),
        "segments": lambda n: tf.math.segment_sum(n, [0, 0, 1]),
        "confusion_matrix": lambda n: tf.math.confusion_matrix([0, 2, 1], [1, 2, 0]),
        "expm": lambda n: tf.linalg.expm(tf.reshape(tf.cast(n[:1], tf.float32) * tf.ones(4) * 7.0, (2, 2))),
    }
    for name, function in functions.items():
        eager, compiled = function(N), hf.function(function)(N)
        assert compiled.numpy().tobytes() == eager.numpy().tobytes() and compiled.type == eager.type, name
    assert functions["dynamic_stitch"](N).tolist() == [1, 3, 2]
    assert functions["bincount"](N).tolist() == [0, 1, 1, 1]


SHAPES: dict[str, Any] = {
    "itself": lambda x: tf.shape(x),
    "nested": lambda x: {"a": [tf.shape(x, out_type=tf.int64)], "b": tf.shape(x).dtype},
    "a part": lambda x: tf.shape(x)[1:],
    "reversed": lambda x: tf.reshape(x, tf.shape(x)[::-1]),
    "arithmetic": lambda x: [10 - tf.shape(x), tf.shape(x) % 2, tf.shape(x) / 2, -tf.shape(x)],
    "added": lambda x: tf.shape(x) + tf.shape(x),
    "gathered": lambda x: tf.gather(tf.shape(x), [1, 0]),
    "new": lambda x: tf.zeros(tf.concat([tf.shape(x), [2]], 0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_tensors(name: str) -> None:
    function = SHAPES[name]
    open_extents = [tf.TensorSpec([None, None], tf.float32)]
    for compiled in (tf.function(function), tf.function(function, input_signature=open_extents)):
        for shape in ((3, 4), (1, 5)):
            x = tf.reshape(tf.range(float(np.prod(shape))), shape)
            (a, of_a), (b, of_b) = pytree.flatten(function(x)), pytree.flatten(compiled(x))
            assert of_a == of_b and [type(leaf) for leaf in a] == [type(leaf) for leaf in b]
            for one, other in zip(a, b):
                assert one == other if isinstance(one, np.dtype) else one.type == other.type
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize(
    "begin, size",
    [([1, 1], [5, 2]), ([1, 1], [2, 4]), ([4, 0], [-1, 1]), ([-1, 0], [1, 1]), ([0, 0], [-2, 1]), ([0, 0], [4, 0])],
)
def test_slices_end_inside(begin: list[int], size: list[int]) -> None:
    x = tf.reshape(tf.range(12.0), (3, 4))

    def function(x: Any) -> Any:
        return tf.slice(x, begin, size)

    for call in (function, tf.function(function)):
        with pytest.raises(hf.errors.IndexRangeError, match=r"\[slice\] .* is not inside of axis \d of f32\[3,4\]"):
            call(x)
    for call in (tf.slice, tf.function(tf.slice)):
        with pytest.raises(hf.errors.IndexRangeError):
            call(x, tf.constant(begin), size)


def test_slices_that_end_at_the_end() -> None:
    x = tf.reshape(tf.range(12.0), (3, 4))
    for begin, size in (([3, 4], [0, 0]), ([0, 0], [3, 4]), ([1, 2], [-1, 2]), ([2, 3], [1, 1])):
        expected = x.numpy()[begin[0] :, begin[1] : begin[1] + size[1]][: None if size[0] == -1 else size[0]]
        for call in (tf.slice, tf.function(tf.slice)):
            np.testing.assert_array_equal(call(x, begin, size), expected)
            np.testing.assert_array_equal(call(x, tf.constant(begin), size), expected)
    with pytest.raises(hf.errors.ShapeError, match="one of each for each axis"):
        tf.slice(x, [1, 1], [5])


def _shared(x: np.ndarray, groups: list[int], weights: np.ndarray, largest: bool) -> np.ndarray:
    """The derivative of the extremes of groups, shared evenly among equal elements; negative ones are of no group."""
    found = np.zeros(len(x))
    for k in set(groups) - {-1}:
        inside = np.array(groups) == k
        taken = inside & (x == (max if largest else min)(x[inside]))
        found[taken] = weights[k] / taken.sum()
    return found


@pytest.mark.parametrize("largest", [True, False])
def test_ties_of_extremes_share_the_derivative(largest: bool) -> None:
    name, weights = ("max" if largest else "min"), np.array([1.0, 10.0, 100.0])
    x = np.array([2.0, 1.0, 2.0, 2.0, 3.0, 1.0, 1.0, 3.0])
    segments = {
        "segment": [0, 0, 0, 1, 1, 1, 1, 2],
        "unsorted_segment": [0, 1, 0, 1, -1, 2, 1, 0],
    }
    for kind, groups in segments.items():
        of = getattr(tf.math, f"{kind}_{name}")
        more = (3,) if kind.startswith("un") else ()
        gradient = hf.grad(lambda x, of=of, groups=groups, more=more: hf.sum(of(x, groups, *more) * weights))
        eager = gradient(hf.asarray(x))
        np.testing.assert_allclose(eager.numpy(), _shared(x, groups, weights, largest), rtol=1e-15)
        assert hf.function(gradient)(hf.asarray(x)).numpy().tobytes() == eager.numpy().tobytes()
    at = getattr(tf, f"tensor_scatter_nd_{name}")
    gradients = hf.grad(lambda x, u: hf.sum(at(x, [[0], [0], [1]], u) * weights), (0, 1))
    given = hf.asarray(x[:3]), hf.asarray(np.array([2.0, 2.0, 1.0]))
    eager = gradients(*given)
    both = np.concatenate([x[:3], [2.0, 2.0, 1.0]])
    wanted = _shared(both, [0, 1, 2, 0, 0, 1], weights, largest)
    np.testing.assert_allclose(np.concatenate([g.numpy() for g in eager]), wanted, rtol=1e-15)
    found = hf.function(gradients)(*given)
    assert [g.numpy().tobytes() for g in found] == [g.numpy().tobytes() for g in eager]


def test_index_vectors_without_elements() -> None:
    table = np.arange(6.0).reshape(3, 2)
    for f in (tf.gather_nd, tf.function(tf.gather_nd)):
        found = f(hf.asarray(table), tf.zeros((2, 0), tf.int32))
        np.testing.assert_array_equal(found.numpy(), np.broadcast_to(table, (2, 3, 2)))
    rows = tf.gather_nd(hf.asarray(table), tf.zeros((3, 4, 0), tf.int32), batch_dims=1)
    np.testing.assert_array_equal(rows.numpy(), np.broadcast_to(table[:, None], (3, 4, 2)))
    for scatter in (
        lambda: tf.scatter_nd(tf.zeros((2, 0), tf.int32), tf.ones((2, 3)), [3]),
        lambda: tf.tensor_scatter_nd_update(tf.ones(3), tf.zeros((2, 0), tf.int32), tf.ones((2, 3))),
        lambda: tf.tensor_scatter_nd_max(tf.ones(3), tf.zeros((2, 0), tf.int32), tf.ones((2, 3))),
    ):
        with pytest.raises(hf.errors.ShapeError, match="last axis must have an element"):
            scatter()


@pytest.mark.parametrize("largest", [True, False])
def test_extremes_of_no_elements(largest: bool) -> None:
    """TensorFlow's are the value to which any other is preferred, and nothing has a part in them."""
    reduce, limit = (tf.reduce_max, -np.inf) if largest else (tf.reduce_min, np.inf)
    for run in (lambda f: f, tf.function):
        for shape, axis, wanted in (((3, 0), 1, (3,)), ((0, 3), 0, (3,)), ((2, 0), None, ()), ((0, 2), 1, (0,))):
            found = run(lambda x, axis=axis: reduce(x, axis))(tf.zeros(shape))
            assert np.array_equal(found.numpy(), np.full(wanted, limit)), (shape, axis)
        kept = run(lambda x: reduce(x, [0, 1], keepdims=True))(tf.zeros((2, 0), tf.int8))
        assert kept.dtype == tf.int8 and kept.numpy().tolist() == [[-128 if largest else 127]]
        x = tf.Variable(tf.zeros((3, 0)))

        def derivative(x: Any = x) -> Any:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(reduce(x, axis=1))
            return tape.gradient(y, x)

        assert run(derivative)().shape == (3, 0)
