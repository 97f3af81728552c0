"""What graphs and concrete functions answer under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow.compat.tf as tf
from hybridflow.errors import ArgumentError


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
