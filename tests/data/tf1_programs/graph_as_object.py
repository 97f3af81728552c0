"""Operations of a graph: names, types, inputs, attributes, text."""

import hybridflow.compat.v1 as tf

g = tf.Graph()
with g.as_default():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.name_scope("layer"):
        w = tf.Variable([[1.0], [2.0]], name="w")
        y = tf.matmul(x, w, name="y")
    with tf.name_scope("layer"):
        z = tf.identity(y, name="y")
    s = y + 1
assert tf.get_default_graph() is not g and y.graph is g
assert [op.name for op in g.get_operations()] == [
    "x",
    "layer/w/initial_value",
    "layer/w",
    "layer/w/Assign",
    "layer/w/read",
    "layer/y",
    "layer_1/y",
    "add",
]
assert [op.type for op in g.get_operations()] == [
    "Placeholder",
    "Const",
    "VariableV2",
    "Assign",
    "Identity",
    "MatMul",
    "Identity",
    "Add",
]
assert g.get_tensor_by_name("layer/y:0") is y and g.get_operation_by_name("layer/y") is y.op
assert [t.name for t in y.op.inputs] == ["x:0", "layer/w/read:0"]
assert x.op.get_attr("dtype") == tf.float32 and x.shape.as_list() == [None, 2]
assert [op.name for op in y.consumers()] == ["layer_1/y", "add"]
text = str(g.as_graph_def())
assert 'name: "layer/y"' in text and 'op: "MatMul"' in text and 'input: "layer/w/read"' in text
assert g.as_graph_def().node[0].name == "x"
for wrong, error in (("layer/y", ValueError), ("layer/q:0", KeyError), ("layer/y:1", KeyError)):
    try:
        g.get_tensor_by_name(wrong)
    except error:
        continue
    raise AssertionError(wrong)
g.finalize()
try:
    with g.as_default():
        tf.constant(1)
except RuntimeError as error:
    assert "finalized" in str(error)
else:
    raise AssertionError("a finalized graph grew")
