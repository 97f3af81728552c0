"""``tf.ragged`` and ``tf.sparse``: results of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow.compat.tf as tf
from hybridflow.compat.adapters.rows import BINARY, UNARY, function_named


def test_constants() -> None:
    x = tf.ragged.constant([[[1, 2], [3]], [[4, 5]]])
    assert (x.dtype, x.ragged_rank, x.shape.as_list()) == (tf.int32, 2, [2, None, None])
    assert tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]]).ragged_rank == 2
    assert tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).shape.as_list() == [2, None, 2]
    assert tf.ragged.constant([[[1, 2]], []], inner_shape=(2,)).ragged_rank == 1
    assert tf.ragged.constant([1, 2]).shape == (2,)
    for rows in ([["one", "two"], [3, 4]], ["A", ["B", "C"]]):
        with pytest.raises(ValueError, match="several types or depths"):
            tf.ragged.constant(rows)


def test_ranges_and_stacks() -> None:
    assert tf.ragged.range([3, 0, 2]).to_list() == [[0, 1, 2], [], [0, 1]]
    assert tf.ragged.range([0, 5], [4, 8], 2).to_list() == [[0, 2], [5, 7]]
    assert tf.ragged.stack([[1, 2], [3]]).to_list() == [[1, 2], [3]]
    two = tf.ragged.stack([tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4]])])
    assert two.to_list() == [[[1], [2, 3]], [[4]]]
    assert tf.concat([two, two], axis=0).to_list() == two.to_list() * 2


def test_specs() -> None:
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def largest(rows):  # type: ignore[no-untyped-def]
        return tf.reduce_max(rows, axis=-1)

    assert largest(tf.ragged.constant([[1, 2], [3], [4, 5, 6]])).numpy().tolist() == [2, 3, 6]
    with pytest.raises(ValueError, match="no axis of rows"):
        tf.RaggedTensorSpec([3])


def test_sparse_forms() -> None:
    x = tf.ragged.constant([[1, 2], [], [3]])
    assert x.to_sparse().indices.numpy().tolist() == [[0, 0], [0, 1], [2, 0]]
    assert tf.RaggedTensor.from_sparse(x.to_sparse()).to_list() == [[1, 2], [], [3]]
    deep = tf.ragged.constant([[[1], [2, 3]], [], [[4]]]).to_sparse()
    assert deep.indices.numpy().tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1], [2, 0, 0]]
    assert deep.dense_shape.numpy().tolist() == [3, 2, 2]
    with pytest.raises(ValueError, match="not right-ragged"):
        tf.RaggedTensor.from_sparse(tf.sparse.from_dense([[0, 1]]))


def test_sparse() -> None:
    dense = np.arange(12).reshape(3, 4) % 5
    x = tf.sparse.from_dense(dense)
    assert x.dense_shape.dtype == tf.int64
    part = tf.sparse.slice(x, [1, 1], [5, 2])
    assert tf.sparse.to_dense(part).numpy().tolist() == dense[1:6, 1:3].tolist()
    assert part.dense_shape.numpy().tolist() == [2, 2]
    plus = tf.sparse.map_values(tf.add, x, 5)
    assert tf.sparse.to_dense(plus).numpy().tolist() == np.where(dense == 0, 0, dense + 5).tolist()
    assert tf.sparse.to_dense(tf.sparse.map_values(tf.multiply, x, x)).numpy().tolist() == (dense**2).tolist()
    assert tf.sparse.to_dense(tf.sparse.reshape(x, [2, -1])).numpy().tolist() == dense.reshape(2, 6).tolist()
    assert tf.sparse.expand_dims(x, 0).dense_shape.numpy().tolist() == [1, 3, 4]
    assert tf.sparse.expand_dims(x).dense_shape.numpy().tolist() == [3, 4, 1]
    kept = tf.sparse.retain(x, tf.greater(x.values, 2))
    assert tf.sparse.to_dense(kept).numpy().tolist() == np.where(dense > 2, dense, 0).tolist()
    with pytest.raises(ValueError, match="do not have the shape"):
        tf.sparse.reshape(x, [5, -1])
    with pytest.raises(ValueError, match="for 2 axes"):
        tf.sparse.slice(x, [0], [1])
    with pytest.raises(ValueError, match="no argument is sparse"):
        tf.sparse.map_values(tf.add, 1, 2)
    with pytest.raises(ValueError, match="Expected a bool for each entry"):
        tf.sparse.retain(x, [True])


def test_values_of_any_kind_fill_up() -> None:
    x = tf.constant([[1.0, 2.0]])
    y = tf.pad(x, [[1, 0], [0, 1]], constant_values=-tf.reduce_max(x))
    assert y.numpy().tolist() == [[-2, -2, -2], [1, 2, -2]]


def test_py_function_decorates() -> None:
    @tf.py_function(Tout=tf.TensorSpec([], tf.float32))
    def plus(x, y):  # type: ignore[no-untyped-def]
        return x + y

    assert tf.function(lambda x: plus(x, x))(tf.constant(1.5)).numpy() == 3.0


def test_functions_of_rows() -> None:
    x = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
    assert tf.add(x, 3).to_list() == [[6, 4, 7, 4], [], [8, 12, 5], [9], []]
    assert tf.subtract(10, x).to_list()[3] == [4]
    assert tf.maximum(x, x * 2).to_list() == (x * 2).to_list()
    assert tf.abs(-x).to_list() == x.to_list()
    assert tf.cast(x, tf.float32).dtype == tf.float32
    assert tf.greater(x, 3).to_list()[2] == [True, True, False]
    assert tf.tile(x, [1, 2]).to_list() == [row * 2 for row in x.to_list()]
    assert tf.tile(x, [2, 1]).to_list() == x.to_list() * 2
    assert tf.map_fn(tf.math.square, x).to_list()[0] == [9, 1, 16, 1]
    assert tf.map_fn(tf.reduce_sum, x).numpy().tolist() == [9, 0, 16, 6, 0]
    table = tf.constant([[float(k), -float(k)] for k in range(10)])
    assert tf.nn.embedding_lookup(table, x).to_list()[3] == [[6, -6]]
    assert tf.gather(table, x).shape.as_list() == [5, None, 2]
    assert tf.gather(x, [3, 0]).to_list() == [[6], [3, 1, 4, 1]]
    with pytest.raises(TypeError, match="it is ragged"):
        tf.linalg.matmul(x, x)


def test_every_elementwise_function_takes_rows() -> None:
    rows = {
        "strings": tf.ragged.constant([["1", "2"], ["3"]]),
        "logical": tf.ragged.constant([[True, False], [True]]),
        "bitwise": tf.ragged.constant([[1, 2], [3]]),
        "": tf.ragged.constant([[1.0, 0.5], [0.25]]),
    }
    others = {
        "cast": (tf.float64,),
        "clip_by_value": (0.0, 0.5),
        "strings.regex_replace": ("1", "2"),
        "strings.to_hash_bucket_fast": (3,),
    }
    for name in (*UNARY, *BINARY):
        function = function_named(name)
        if function is not None:
            x = rows["" if name == "strings.as_string" else next(kind for kind in rows if kind in name)]
            operands = (x, x) if name in BINARY else (x, *others.get(name, ()))
            flat = function(*[v.values if isinstance(v, tf.RaggedTensor) else v for v in operands])
            result = function(*operands)
            assert result.row_splits.numpy().tolist() == [0, 2, 3], name
            assert result.values.dtype == flat.dtype
            np.testing.assert_array_equal(result.values.numpy(), flat.numpy(), name)
    x = rows["bitwise"]
    assert tf.divide(x, 2).to_list() == [[0.5, 1.0], [1.5]]
    assert tf.divide(6, x).to_list() == [[6.0, 3.0], [2.0]]


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_joined_and_reversed(compiled: bool) -> None:
    def palindrome(x, axis):  # type: ignore[no-untyped-def]
        return tf.concat([x, tf.reverse(x, [axis])], axis)

    call = tf.function(palindrome) if compiled else palindrome
    assert call(tf.ragged.constant([[1, 2], [3], [4, 5, 6]]), 1).to_list() == [[1, 2, 2, 1], [3, 3], [4, 5, 6, 6, 5, 4]]
    assert call(tf.constant([[1, 2], [3, 4]]), 1).numpy().tolist() == [[1, 2, 2, 1], [3, 4, 4, 3]]
    deep = tf.ragged.constant([[[1], [2, 3]], []])
    assert palindrome(deep, 1).to_list() == [[[1], [2, 3], [2, 3], [1]], []]
    assert tf.reverse(tf.ragged.constant([[1], [2, 3]]), [0, 1]).to_list() == [[3, 2], [1]]


def test_shapes_of_rows() -> None:
    shape = tf.shape(tf.ragged.constant([[1], [2, 3, 4], [], [5, 6]]))
    assert repr(shape) == "<DynamicRaggedShape lengths=[4, (1, 3, 0, 2)] num_row_partitions=1>"
    letters = tf.constant([["a", "b"], ["c", "d"], ["e", "f"]])
    assert tf.reshape(letters, shape).to_list() == [[b"a"], [b"b", b"c", b"d"], [], [b"e", b"f"]]
    assert tf.zeros(shape).to_list() == [[0], [0, 0, 0], [], [0, 0]]
    assert tf.ones(shape, tf.int32).dtype == tf.int32
    assert tf.fill(shape, 9).to_list()[1] == [9, 9, 9]
    assert shape[0].numpy() == 4
    assert (shape.rank, shape.is_uniform(0), shape.is_uniform(1), len(shape[:1].static_lengths())) == (
        2,
        True,
        False,
        1,
    )
    with pytest.raises(ValueError, match="Index 1 is not uniform"):
        shape[1]
    with pytest.raises(ValueError, match="does not begin with the first axis"):
        shape[1:]
    kind = tf.experimental.DynamicRaggedShape
    made = kind.from_lengths([4, (2, 1, 0, 8), 12])
    assert repr(made) == "<DynamicRaggedShape lengths=[4, (2, 1, 0, 8), 12] num_row_partitions=1>"
    assert made.inner_shape.numpy().tolist() == [11, 12]
    part = tf.experimental.RowPartition.from_row_lengths([5, 3, 2])
    assert kind([part], [10, 8]).static_lengths() == [3, (5, 3, 2), 8]
    assert part.value_rowids().numpy().tolist() == [0] * 5 + [1] * 3 + [2] * 2
    assert tf.experimental.RowPartition.from_value_rowids([0, 0, 2]).row_lengths().numpy().tolist() == [2, 0, 1]
    assert tf.experimental.RowPartition.from_uniform_row_length(2, 6).nrows() == 3
    assert kind.from_tensor(tf.ragged.constant([[[1], [2, 3]], []])).static_lengths() == [2, (2, 0), (1, 2)]
    with pytest.raises(ValueError, match="10 values, and 9 follow"):
        kind([part], [9])
    with pytest.raises(ValueError, match="2 lengths for 4 rows"):
        kind.from_lengths([4, (1, 2)])


def _example(**features: list[int]) -> bytes:
    values = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=numbers)) for name, numbers in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()


@pytest.mark.parametrize(
    ("partition", "told", "rows"),
    [
        ("RowSplits", [0, 2, 3], [[1, 2], [3]]),
        ("RowLengths", [2, 0, 1], [[1, 2], [], [3]]),
        ("RowStarts", [0, 2], [[1, 2], [3]]),
        ("RowLimits", [2, 2, 3], [[1, 2], [], [3]]),
        ("ValueRowIds", [0, 0, 2], [[1, 2], [], [3]]),
    ],
)
def test_rows_of_examples(partition: str, told: list[int], rows: list[list[int]]) -> None:
    kind = getattr(tf.io.RaggedFeature, partition)
    feature = {"x": tf.io.RaggedFeature(tf.int64, "values", [kind("told")])}
    record = _example(values=[1, 2, 3], told=told)
    assert tf.io.parse_single_example(record, feature)["x"].to_list() == rows
    batch = tf.io.parse_example([record, _example(values=[], told=[0] if partition == "RowSplits" else [])], feature)
    assert batch["x"].to_list() == [rows, []]
    plain = tf.io.parse_example([record, record], {"values": tf.io.RaggedFeature(tf.int64)})["values"]
    assert plain.to_list() == [[1, 2, 3]] * 2
    if partition == "RowLengths":
        with pytest.raises(tf.errors.InvalidArgumentError, match="the rows do not hold its values"):
            tf.io.parse_example([_example(values=[1, 2, 3], told=[1])], feature)


def test_rows_of_one_length_and_places_of_examples() -> None:
    record = _example(values=[1, 2, 3, 4], rows=[2, 0, 1, 0], columns=[0, 1, 1, 0])
    uniform = tf.io.RaggedFeature(tf.int64, "values", [tf.io.RaggedFeature.UniformRowLength(2)])
    assert tf.io.parse_single_example(record, {"x": uniform})["x"].numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.io.parse_example([record], {"x": uniform})["x"].to_list() == [[[1, 2], [3, 4]]]
    sparse = tf.io.SparseFeature(["rows", "columns"], "values", tf.int64, [3, 2])
    x = tf.io.parse_example([record], {"x": sparse})["x"]
    assert tf.sparse.to_dense(x).numpy().tolist() == [[[4, 2], [0, 3], [1, 0]]]
    assert x.indices.numpy().tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 2, 0]]


def test_ragged_tensors_are_printed_and_made_arrays_as_in_tensorflow() -> None:
    assert repr(tf.ragged.constant([[1, 2], [3, 4]])) == "<tf.RaggedTensor [[1, 2],\n [3, 4]]>"
    assert repr(tf.ragged.constant([[1, 2], [3]])) == "<tf.RaggedTensor [[1, 2], [3]]>"
    assert repr(tf.ragged.constant([[], []])) == "<tf.RaggedTensor [[], []]>"
    assert tf.ragged.constant([[1, 2], [3, 4]]).numpy().shape == (2, 2)
    assert tf.ragged.constant([[1, 2], [3]]).numpy().dtype == object
