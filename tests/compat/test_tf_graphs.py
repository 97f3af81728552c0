"""What graphs and concrete functions answer under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from hybridflow.errors import ArgumentError, ShapeError


def _concrete() -> Any:
    weights = tf.Variable(np.ones((3, 2), "f4"), name="w")

    @tf.function
    def f(x: Any, y: Any) -> Any:
        return {"s": x @ weights + y, "t": y - 1}

    return f.get_concrete_function(tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([2], tf.float32))


def test_operations_of_a_concrete_function() -> None:
    graph = _concrete().graph
    operations = graph.get_operations()
    assert [op.name for op in operations if op.type == "Placeholder"] == ["x", "y", "w_resource"]
    assert {"w/ReadVariableOp", "MatMul", "add", "sub", "Identity", "Identity_1"} <= {op.name for op in operations}
    product = graph.get_operation_by_name("MatMul")
    assert product.type == "MatMul" and [x.name for x in product.inputs] == ["x:0", "w/ReadVariableOp:0"]
    assert product.outputs[0] is product.values()[0] is graph.get_tensor_by_name("MatMul:0")
    assert tuple(product.outputs[0].shape) == (None, 2) and product.outputs[0].dtype == tf.float32
    assert repr(product) == "<tf.Operation 'MatMul' type=MatMul>"
    assert graph.get_operation_by_name("x").get_attr("dtype") is tf.float32
    assert graph.get_operations()[0] is operations[0]  # the same objects each time


def test_names_that_are_not_there() -> None:
    graph = _concrete().graph
    with pytest.raises(KeyError, match="not in the graph"):
        graph.get_operation_by_name("nothing")
    with pytest.raises(KeyError, match="has 1 outputs"):
        graph.get_tensor_by_name("MatMul:3")
    with pytest.raises(ValueError, match="no name of a tensor"):
        graph.get_tensor_by_name("MatMul")
    with pytest.raises(ValueError, match="no attr named 'T'"):
        graph.get_operation_by_name("MatMul").get_attr("T")


def test_descriptions() -> None:
    concrete = _concrete()
    described = concrete.graph.as_graph_def()
    assert [node.name for node in described.node] == [op.name for op in concrete.graph.get_operations()]
    assert next(node for node in described.node if node.op == "MatMul").input == ["x", "w/ReadVariableOp"]
    assert 'op: "MatMul"' in str(described)
    function = concrete.function_def
    assert function.signature.name == "__inference_f"
    assert [argument.name for argument in function.signature.input_arg] == ["x", "y", "w_resource"]
    assert len(function.signature.output_arg) == len(concrete.outputs) == 2
    assert [x.name for x in concrete.inputs] == ["x:0", "y:0", "w_resource:0"]
    assert concrete.structured_outputs["t"].shape == (2,)


def test_branches_are_operations_of_several_results() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: (x, x + 1), lambda: (x * 2, x))

    graph = f.get_concrete_function(tf.TensorSpec([2], tf.float32)).graph
    branch = graph.get_operation_by_name("cond")
    assert branch.type == "If" and [x.name for x in branch.outputs] == ["cond:0", "cond:1"]


def _halved(x: Any) -> Any:
    while x > 1:
        x = x / 2
    return x


def test_code_of_a_converted_function() -> None:
    text = tf.autograph.to_code(_halved)
    assert text.startswith("def _halved(x):") and "recorder" in text
    compile(text, "converted", "exec")
    assert tf.autograph.to_code(tf.function(_halved)) == text
    with pytest.raises(ArgumentError, match="there is no source"):
        tf.autograph.to_code(np.sin)


def test_graphs_of_tensorflow_two() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.constant(1.0)
        with tf.name_scope("inner"):
            y = tf.cond(x > 0, lambda: x + 1, lambda: x - 1)
        done = tf.group(y, tf.no_op())
    assert x.graph is graph and x.op.type == "Const" and done.type == "NoOp"
    with tf.compat.v1.Session(graph=graph) as session:
        assert session.run([y, done]) == [2.0, None]
    assert tf.group(tf.constant(1.0)) is None  # outside of it


@pytest.mark.parametrize("sign", (1.0, -1.0))
def test_branches_of_unlike_shapes(sign: float) -> None:
    def f(x: Any) -> Any:
        first, second = tf.cond(
            tf.reduce_sum(x) > 0, lambda: (x[:1] * 2, tf.ones([2, 3])), lambda: (x, tf.zeros([2, 5], tf.float32))
        )
        return tf.reduce_sum(first) + tf.reduce_sum(second), first

    x = tf.constant([1.0, 2.0, 4.0]) * sign
    total, first = f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        compiled_total, compiled_first = tf.function(f)(x)
    assert compiled_total == total and compiled_first.shape == first.shape == ((1,) if sign > 0 else (3,))
    expected = [2.0, 0.0, 0.0] if sign > 0 else [1.0, 1.0, 1.0]
    assert tape.gradient(compiled_total, x).numpy().tolist() == expected


def test_cases_of_unlike_shapes() -> None:
    @tf.function
    def f(i: Any) -> Any:
        return tf.switch_case(
            i, {3: lambda: tf.zeros([2, 2]), 5: lambda: tf.ones([3, 2])}, lambda: tf.fill([1, 2], 7.0)
        )

    assert [tuple(f(tf.constant(i)).shape) for i in (3, 5, 4)] == [(2, 2), (3, 2), (1, 2)]
    with pytest.raises(ShapeError):  # another number of axes
        tf.function(lambda c: tf.cond(c, lambda: tf.zeros([2]), lambda: tf.zeros([2, 2])))(tf.constant(True))


def test_reverse_sequence() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    expected = x.copy()
    expected[0, :, :2], expected[1, :, :4] = x[0, :, 1::-1], x[1, :, ::-1]
    for run in (tf.reverse_sequence, tf.function(lambda x, n, *_: tf.reverse_sequence(x, n, 2, 0))):
        assert (run(x, tf.constant([2, 4]), 2, 0).numpy() == expected).all()
    assert (tf.reverse_sequence(x, [0, 1, 1], seq_axis=0, batch_axis=1).numpy() == x).all()
    for axes in ({"seq_axis": 1, "batch_axis": 1}, {"batch_axis": 0}, {"seq_axis": 1, "batch_axis": -2}):
        with pytest.raises(ArgumentError):
            tf.reverse_sequence(x, [1, 2], **axes)


def test_split_at_sizes_that_calls_find() -> None:
    @tf.function
    def f(x: Any, sizes: Any) -> Any:
        return tf.split(x, sizes, axis=1)

    x = tf.reshape(tf.range(12), (2, 6))
    for sizes in ([1, 2, 3], [0, 6, 0]):
        parts = f(x, tf.constant(sizes))
        assert [part.shape[1] for part in parts] == sizes
        assert (tf.concat(parts, 1).numpy() == x.numpy()).all()


def test_inputs_of_unknown_extents_that_meet() -> None:
    a, b = tf.keras.Input((None, 4)), tf.keras.Input((None, 4))
    for symbol, shape in ((a + b, (2, 3, 4)), (tf.keras.layers.Concatenate()([a, b]), (2, 3, 8))):
        assert tuple(symbol.shape) == (None, None, shape[-1])
        model = tf.keras.Model([a, b], symbol)
        ones = np.ones((2, 3, 4), "f4")
        assert model([ones, ones]).shape == shape
        with pytest.raises(ShapeError):
            model([ones, np.ones((2, 5, 4), "f4")])
    with pytest.raises(ShapeError):
        a + tf.keras.Input((None, 5))


def test_old_arguments_of_functions_that_both_have() -> None:
    old = tf.compat.v1
    with old.Graph().as_default(), old.Session() as session:
        x = old.constant([[3.0, 0.0], [4.0, 0.0]])
        results = {
            "ReverseSequence": old.reverse_sequence(x, [2, 1], seq_dim=1, batch_dim=0),
            "L2Normalize": old.math.l2_normalize(x, dim=0),
            "ReduceEuclideanNorm": old.math.reduce_euclidean_norm(x, reduction_indices=0, keep_dims=True),
            "CountNonzero": old.count_nonzero(x, reduction_indices=[1]),
            "Cumprod": old.cumprod(x, axis=1),
        }
        assert [result.op.type for result in results.values()] == list(results)
        values = [value.tolist() for value in session.run(list(results.values()))]
    assert values[0] == [[0, 3], [4, 0]] and np.allclose(values[1], [[0.6, 0], [0.8, 0]])
    assert values[2:] == [[[5, 0]], [1, 1], [[3, 0], [4, 0]]]


def test_a_function_leaves_out_what_nobody_reads() -> None:
    """An index out of range is no error then; assertions and effects stay."""
    done = tf.Variable(0)

    @tf.function
    def f(x: Any) -> Any:
        tf.gather(x, [1])
        tf.debugging.assert_positive(x)
        done.assign_add(1)
        return x

    @tf.function
    def g(x: Any) -> None:
        done.assign(tf.gather(x, [1])[0])

    @hf.function
    def around(x: Any) -> Any:
        hf.take(x, [1])
        return h(x)

    h = tf.function(lambda x: x * 2)
    with pytest.raises(hf.errors.IndexRangeError):  # a function of another name has its own checks
        around(hf.asarray([3]))
    assert f(tf.constant([3])).numpy().tolist() == [3] and int(done) == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant([-3]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        g(tf.constant([3]))
    assert int(done) == 1
    x = tf.Variable([3.0])

    @tf.function
    def slope() -> Any:
        with tf.GradientTape() as tape:
            tf.gather(x, [2])
            y = x * x
        return tape.gradient(y, x)

    assert slope().numpy().tolist() == [6.0]
