"""Values, dtypes, shapes and words of what programs of TensorFlow compute: each was compared with TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow.compat.tf as tf

_WIDE = np.array([1.0, 2.5])


@pytest.mark.parametrize("is_traced", [False, True])
def test_arrays_take_the_dtype_of_the_tensor_beside_an_operator(is_traced: bool) -> None:
    def all_of(x: Any) -> Any:
        return x * _WIDE, _WIDE * x, x - _WIDE, _WIDE / x, x**_WIDE, x @ np.ones((2, 2)), np.ones((2, 2)) @ x

    square = tf.ones((2, 2))
    for result in tf.function(all_of)(square) if is_traced else all_of(square):
        assert result.dtype == tf.float32
    whole = tf.constant([1, 2])
    assert (whole + np.array([1, 2])).dtype == (np.array([1, 2]) - whole).dtype == tf.int32
    assert (tf.constant([0.1]) == np.array([0.1])).numpy().tolist() == [True]
    assert (whole * _WIDE).dtype == tf.float64  # nothing is cut off
    assert (tf.ones(2, tf.float64) * _WIDE.astype(np.float32)).dtype == tf.float64
    assert (tf.Variable([1.0, 2.0]) * _WIDE).dtype == tf.float32


def test_an_array_that_a_function_reads_is_read_anew_in_the_dtype_of_the_tensor() -> None:
    array = np.array([1.0, 2.0])
    scaled = tf.function(lambda x: x * array)
    assert scaled(tf.ones(2)).numpy().tolist() == [1.0, 2.0]
    array[0] = 5.0
    assert scaled(tf.ones(2)).numpy().tolist() == [5.0, 2.0]


def test_operators_of_hybridflow_itself_promote(monkeypatch: pytest.MonkeyPatch) -> None:
    from hybridflow.core.context import dialect

    monkeypatch.setattr(dialect, "is_tensorflow", False)
    assert (tf.ones(2) * _WIDE).dtype == np.float64


def test_python_ints_are_int32() -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1, 2], [3, 4])
    assert isinstance(sparse, tf.SparseTensor) and sparse.dtype == tf.int32
    assert tf.sparse.to_dense(sparse).dtype == tf.int32
    dataset = tf.keras.utils.timeseries_dataset_from_array([0, 1, 2, 3], targets=[2, 3], sequence_length=2)
    assert [part.dtype for part in next(iter(dataset))] == [tf.int32, tf.int32]
    assert tf.shape(tf.ragged.constant([[1], [2, 3]]))[0].dtype == tf.int32
    assert tf.shape(tf.ragged.constant([[1], [2, 3]]), tf.int64)[0].dtype == tf.int64


def test_floats_of_single_precision() -> None:
    assert tf.keras.backend.constant(np.ones(2, np.uint8)).dtype == tf.float32
    assert tf.keras.backend.constant([1], dtype="int32").dtype == tf.int32
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    assert rate(np.array([0.0, 10.0])).dtype == rate(5).dtype == tf.float32
    assert tf.signal.rfft(np.arange(4.0)).dtype == tf.signal.fft(np.ones(2, complex)).dtype == tf.complex64
    assert tf.signal.rfft(tf.constant(np.arange(4.0))).dtype == tf.complex128


def test_words_of_sparse_tensors() -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1, 2], [3, 4])
    words = (
        "SparseTensor(indices=tf.Tensor(\n[[0 0]\n [1 2]], shape=(2, 2), dtype=int64), "
        "values=tf.Tensor([1 2], shape=(2,), dtype=int32), dense_shape=tf.Tensor([3 4], shape=(2,), dtype=int64))"
    )
    assert repr(sparse) == str(sparse) == words
    assert tf.is_tensor(sparse) and tf.is_tensor(tf.ragged.constant([[1], []])) and not tf.is_tensor([1])


def test_shapes_of_symbols_and_models_are_printed_as_tuples() -> None:
    inputs = tf.keras.Input((3,))
    model = tf.keras.Sequential([inputs, tf.keras.layers.Dense(2)])
    assert repr(inputs.shape) == "(None, 3)" and inputs.shape.as_list() == [None, 3]
    assert type(model.output_shape) is type(model.input_shape) is tuple and model.output_shape == (None, 2)


def test_examples_are_shown_in_their_text_form() -> None:
    numbers = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 0.1]))
    texts = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'a\xff"\n']))
    ints = tf.train.Feature(int64_list=tf.train.Int64List(value=[-1]))
    assert str(numbers) == "float_list {\n  value: 1\n  value: 0.1\n}\n"
    assert str(texts) == 'bytes_list {\n  value: "a\\377\\"\\n"\n}\n' and str(tf.train.Feature()) == ""
    lines = str(tf.train.Example(features=tf.train.Features(feature={"n": ints}))).split("\n")
    assert lines[:5] == ["features {", "  feature {", '    key: "n"', "    value {", "      int64_list {"]
    assert lines[5:] == ["        value: -1", "      }", "    }", "  }", "}", ""]


def test_pictures_are_changed_by_the_numbers_of_a_seed() -> None:
    image = tf.cast(tf.reshape(tf.range(12), (2, 2, 3)), tf.uint8)  # TensorFlow's results
    bright = tf.image.stateless_random_brightness(image, max_delta=0.95, seed=(1, 0))
    assert bright.numpy().ravel().tolist() == list(range(183, 195))
    contrast = tf.image.stateless_random_contrast(image, 0.1, 0.9, seed=(1, 0))
    assert contrast.numpy().ravel().tolist() == [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]
    hue = tf.image.stateless_random_hue(image, 0.1, seed=(1, 0))
    assert hue.numpy().ravel().tolist() == [0, 0, 2, 3, 3, 5, 6, 6, 8, 9, 9, 11]
    crop = tf.image.stateless_random_crop(image, (1, 2, 3), seed=(1, 0))
    assert crop.numpy().ravel().tolist() == list(range(6))
    assert (tf.image.stateless_random_flip_left_right(image, seed=(1, 0)) == image).numpy().all()


def test_a_message_is_equal_to_one_that_holds_the_same_and_fills_its_maps() -> None:
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.extend([3, 4])
    assert example.features.feature["a"].WhichOneof("kind") == "int64_list"
    assert tf.train.Example.FromString(example.SerializeToString()) == example
    assert tf.train.Feature() != example.features.feature["a"]


_WORDS = [[b"When", b"shall"], [b"In", b"thunder", b","]]


def _sequence() -> bytes:
    context = tf.train.Features(feature={"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))})
    texts = [tf.train.Feature(bytes_list=tf.train.BytesList(value=words)) for words in _WORDS]
    pairs = [tf.train.Feature(int64_list=tf.train.Int64List(value=pair)) for pair in ([1, 2], [3, 4])]
    lists = {"words": tf.train.FeatureList(feature=texts), "pairs": tf.train.FeatureList(feature=pairs)}
    example = tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists))
    data: bytes = example.SerializeToString()
    assert tf.train.SequenceExample.FromString(data) == example and "feature_lists {" in str(example)
    return data


def test_sequence_examples() -> None:
    data = _sequence()
    told = {"id": tf.io.FixedLenFeature([], tf.int64), "none": tf.io.FixedLenFeature([1], tf.int64, default_value=[5])}
    lists = {
        "words": tf.io.VarLenFeature(tf.string),
        "pairs": tf.io.FixedLenSequenceFeature([2], tf.int64),
        "absent": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
    }
    context, steps = tf.io.parse_single_sequence_example(data, told, lists)
    assert int(context["id"]) == 7 and context["none"].numpy().tolist() == [5]
    assert steps["pairs"].numpy().tolist() == [[1, 2], [3, 4]] and steps["absent"].shape == (0, 2)
    assert tf.RaggedTensor.from_sparse(steps["words"]).to_list() == _WORDS
    _, ragged = tf.io.parse_single_sequence_example(data, {}, {"words": tf.io.RaggedFeature(tf.string)})
    assert ragged["words"].to_list() == _WORDS
    _, several, lengths = tf.io.parse_sequence_example([data, data], told, {"pairs": lists["pairs"]})
    assert several["pairs"].shape == (2, 2, 2) and lengths["pairs"].numpy().tolist() == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no list 'other'"):
        tf.io.parse_single_sequence_example(data, {}, {"other": tf.io.FixedLenSequenceFeature([], tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_single_sequence_example(b"\xff\xff", {}, lists)


def test_sparse_tensors_as_texts() -> None:
    sparse = tf.SparseTensor([[0, 3], [2, 1], [2, 4]], [10, 30, 20], [4, 5])
    texts = tf.io.serialize_sparse(sparse)
    assert texts.shape == (3,) and tf.io.parse_tensor(texts[1], tf.int32).numpy().tolist() == [10, 30, 20]
    rows = tf.io.serialize_many_sparse(sparse)
    again = tf.io.deserialize_many_sparse(rows, tf.int32)
    assert rows.shape == (4, 3)
    assert (tf.sparse.to_dense(again) == tf.sparse.to_dense(sparse)).numpy().all()


def test_rows_of_sparse_and_ragged_tensors_are_elements() -> None:
    sparse = tf.SparseTensor([[0, 3], [2, 4], [3, 1]], [10, 20, 30], [4, 5])
    dense = tf.sparse.to_dense(sparse).numpy().tolist()
    dataset = tf.data.Dataset.from_tensor_slices((sparse, [1, 2, 3, 4]))
    assert repr(dataset.element_spec[0]) == "SparseTensorSpec(TensorShape([5]), tf.int32)"
    assert repr(dataset.batch(2).element_spec[0]) == "SparseTensorSpec(TensorShape([None, 5]), tf.int32)"
    assert dataset.element_spec[0].value_type is type(sparse)
    assert [tf.sparse.to_dense(x).numpy().tolist() for x, _ in dataset] == dense
    assert [tf.sparse.to_dense(x).numpy().tolist() for x, _ in dataset.batch(3).unbatch()] == dense
    batches = [tf.sparse.to_dense(x).numpy().tolist() for x, _ in dataset.batch(3)]
    assert batches == [dense[:3], dense[3:]]
    doubled = dataset.map(lambda x, y: x * 2)
    assert [tf.sparse.to_dense(x).numpy().tolist() for x in doubled] == (2 * np.array(dense)).tolist()

    rows = [["a", "b"], [], ["c"]]
    texts = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(rows))
    assert [x.numpy().tolist() for x in texts] == [[b"a", b"b"], [], [b"c"]]
    nested = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [], [[4]]]))
    assert repr(nested.element_spec) == "RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)"
    assert [x.to_list() for x in nested.batch(2)] == [[[[1], [2, 3]], []], [[[4]]]]
    assert [x.to_list() for x in nested.batch(2).unbatch()] == [[[1], [2, 3]], [], [[4]]]
    shuffled = [x.to_list() for x in nested.shuffle(3, seed=1).batch(3)]
    assert sorted(shuffled[0], key=str) == sorted([[[1], [2, 3]], [], [[4]]], key=str)
    with pytest.raises(ValueError, match="has 2 rows, others have 3"):
        tf.data.Dataset.from_tensor_slices((tf.ragged.constant(rows), [1, 2]))


def test_activations_connect_layers() -> None:
    inputs = tf.keras.Input((4,))
    for name in ("relu", "tanh", "exponential", "softmax", "leaky_relu", "linear"):
        assert getattr(tf.keras.activations, name)(inputs).shape == (None, 4)
    outputs = tf.keras.activations.relu(inputs, max_value=1.0) + tf.keras.activations.relu(inputs)
    model = tf.keras.Model(inputs, outputs)
    assert model(np.array([[-1.0, 0.5, 2.0, 3.0]])).numpy().tolist() == [[0.0, 1.0, 3.0, 4.0]]


def test_means_of_rows() -> None:
    ints = tf.reduce_mean(tf.ragged.constant([[3, 1, 4, 1], [], [6]]), axis=1)
    assert ints.dtype == tf.float64
    np.testing.assert_array_equal(ints.numpy(), [2.25, np.nan, 6.0])
    floats = tf.reduce_mean(tf.ragged.constant([[[1.0, 2.0], []], [[4.0]]]), axis=2)
    assert floats.dtype == tf.float32 and str(floats.to_list()) == "[[1.5, nan], [4.0]]"


def test_ragged_tensors_of_lists_are_of_int32() -> None:
    kind = tf.RaggedTensor
    for rows in (
        kind.from_row_splits(values=[1, 2, 3], row_splits=[0, 0, 2, 3]),
        kind.from_row_lengths([1, 2, 3], [0, 2, 1]),
        kind.from_value_rowids([1, 2, 3], [1, 1, 2]),
        kind.from_row_starts([1, 2, 3], [0, 0, 2]),
        kind.from_row_limits([1, 2, 3], [0, 2, 3]),
    ):
        assert rows.dtype == tf.int32 and rows.to_list() == [[], [1, 2], [3]]
        assert rows.row_starts().numpy().tolist() == [0, 0, 2] and rows.row_limits().numpy().tolist() == [0, 2, 3]
    nested = kind.from_nested_value_rowids([1, 2, 3], [[0, 0], [0, 1, 1]], [2, 2])
    assert nested.to_list() == [[[1], [2, 3]], []]
    assert tf.reshape(range(4), [2, 2]).dtype == tf.int32


def test_sums_of_sparse_tensors_have_one_entry_at_a_place() -> None:
    a = tf.SparseTensor([[0, 2], [3, 1]], [31, 2], [4, 3])
    b = tf.SparseTensor([[0, 2], [3, 0]], [56, 38], [4, 3])
    total = tf.sparse.add(a, b)
    assert total.indices.numpy().tolist() == [[0, 2], [3, 0], [3, 1]] and total.values.numpy().tolist() == [87, 38, 2]
    joined = tf.sparse.concat(1, [a, b])
    assert joined.indices.numpy().tolist() == [[0, 2], [0, 5], [3, 1], [3, 3]]
    assert joined.values.numpy().tolist() == [31, 56, 2, 38]


def test_words_of_datasets() -> None:
    numbers = tf.data.Dataset.range(4)
    described = {
        "_RangeDataset": numbers,
        "_TensorSliceDataset": tf.data.Dataset.from_tensor_slices([1]),
        "_TensorDataset": tf.data.Dataset.from_tensors([1]),
        "_MapDataset": numbers.map(lambda x: x),
        "_ParallelMapDataset": numbers.map(lambda x: x, num_parallel_calls=2),
        "_BatchDataset": numbers.batch(2),
        "_ShuffleDataset": numbers.shuffle(2),
        "_FlatMapDataset": numbers.flat_map(tf.data.Dataset.range),
        "_TakeWhileDataset": numbers.take_while(lambda x: x < 2),
        "CacheDataset": numbers.cache(),
        "_ZipDataset": tf.data.Dataset.zip((numbers, numbers)),
        "_PrefetchDataset": numbers.prefetch(1),
    }
    for name, dataset in described.items():
        assert repr(dataset).startswith(f"<{name} element_spec=")


def test_texts_are_formatted_as_bytes() -> None:
    text = tf.constant("a")
    assert f"{text}" == "b'a'" and "{:>5}".format(tf.constant(["x"])[0].numpy().decode()) == "    x"
    assert "{}".format(tf.constant(["a", "b"])) == "[b'a' b'b']"


def test_functions_of_tensorflow_are_kept_by_name(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    layers = [tf.keras.layers.Dense(2, activation=act) for act in (tf.nn.relu, tf.tanh, tf.nn.softmax)]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    assert [layer.get_config()["activation"] for layer in layers] == ["relu", "tanh", "softmax"]
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    assert (again(tf.ones((2, 3))) == model(tf.ones((2, 3)))).numpy().all()


def test_scripts_of_characters() -> None:
    rows = tf.ragged.constant([[ord(c) for c in "aЯ界"], [ord(c) for c in "1 ,א"], []], tf.int32)
    assert tf.strings.unicode_script(rows).to_list() == [[25, 8, 17], [0, 0, 0, 19], []]
    codes = tf.constant([0x3042, 0x30A2, 0xAC00, 0x0301, 0x1F600, 0x10FFFF, -1])
    scripts = tf.function(tf.strings.unicode_script)(codes)
    assert scripts.dtype == tf.int32 and scripts.numpy().tolist() == [20, 22, 18, 1, 0, 103, -1]
