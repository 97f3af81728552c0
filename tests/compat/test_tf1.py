"""Programs of TensorFlow 1, run with one changed import."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.v1 as tf
from hybridflow.compat.v1 import graph, graph_stack
from tests.support.paths import DATA

PROGRAMS = sorted((DATA / "tf1_programs").glob("*.py"))


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """Each test has a default graph of its own."""
    graph.reset_default_graph()
    hf.random.set_seed(0)
    yield
    graph_stack.interactive(None)
    graph_stack.set_recording(None)
    graph.reset_default_graph()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path) -> None:
    runpy.run_path(str(path))


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 40


def test_steps_are_those_of_a_compiled_function() -> None:
    """The same network, step by step, with hybridflow's own functions: the same bits."""
    rng = np.random.RandomState(0)
    images, labels = rng.randn(8, 5).astype(np.float32), rng.randint(0, 3, 8)
    start = rng.randn(5, 3).astype(np.float32)
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
    w = tf.Variable(start)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w)))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    v, rule = hf.Variable(start), hf.optimizers.Adagrad(0.1, 0.1, 0.0)

    @hf.function
    def step(images: hf.Tensor, labels: hf.Tensor) -> hf.Tensor:
        with hf.GradientTape() as tape:
            found = hf.mean(hf.losses.softmax_cross_entropy(labels, images @ v, reduction="none"))
        rule.apply_gradients([(tape.gradient(found, v), v)])
        return found

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            own, theirs = sess.run([loss, train], {x: images, y: labels})[0], step(images, labels)
            assert own == theirs.item()
        np.testing.assert_array_equal(sess.run(w), v.numpy())


@pytest.mark.parametrize(
    ("name", "near"), [("reduce_summ", "reduce_sum"), ("placehold", "placeholder"), ("Sesion", "Session")]
)
def test_missing_names_name_the_nearest(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"tf has no '{name}' in hybridflow. Did you mean tf.{near}"):
        getattr(tf, name)


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (tf, "import_graph_def", "build the graph"),
        (tf, "estimator", "tf.train.MonitoredTrainingSession"),
        (tf, "sparse_placeholder", "values"),
        (tf.train, "import_meta_graph", "then restore"),
        (tf.contrib, "slim", "tf.layers"),
    ],
)
def test_what_is_not_there_names_what_does_the_same(module: object, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"has no '{name}' in hybridflow: .*{instead}"):
        getattr(module, name)


@pytest.mark.parametrize(("name", "kind"), [("float", "float32"), ("double", "float64"), ("half", "float16")])
def test_names_of_dtypes_are_those_of_tensorflow(name: str, kind: str) -> None:
    assert tf.placeholder(name, [2]).dtype.name == tf.cast([1], name).dtype.name == kind
    assert tf.get_variable("v", [2], name).dtype == kind and tf.zeros([2], name).dtype == kind


def test_what_is_computed_of_an_unknown_rank_has_the_right_dtype() -> None:
    labels, logits = tf.placeholder(tf.int64, None), tf.placeholder(tf.float32, [None, 3])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    assert losses.dtype == tf.float32 and tf.reduce_mean(losses).shape.as_list() == []
    with tf.Session() as sess:
        assert sess.run(losses, {labels: [1, 2], logits: np.zeros((2, 3))}).shape == (2,)


def test_steps_behind_the_end_of_rows_are_not_made() -> None:
    """The same of a list of steps as of a tensor of them."""
    rng = np.random.RandomState(0)
    x = tf.constant(rng.randn(3, 4, 2).astype(np.float32))
    cell = tf.nn.rnn_cell.LSTMCell(5, initializer=tf.random_uniform_initializer(-1, 1, seed=1))
    outputs, last = tf.nn.dynamic_rnn(cell, x, sequence_length=[1, 4, 0], dtype=tf.float32)
    with tf.variable_scope("rnn", reuse=True):
        steps, end = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=[1, 4, 0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for own, theirs in ((tf.stack(steps, 1), outputs), (end.c, last.c), (end.h, last.h)):
            np.testing.assert_array_equal(*sess.run([own, theirs]))
        assert not sess.run(end.h)[2].any() and not sess.run(steps[1])[0].any() and sess.run(end.h)[0].any()


@pytest.mark.parametrize("layer", ["dense", "conv2d", "conv2d_transpose"])
def test_layers_heed_penalties_and_constraints(layer: str) -> None:
    x = tf.ones([1, 4, 4, 2] if layer != "dense" else [1, 2])
    size = () if layer == "dense" else (3,)
    out = getattr(tf.layers, layer)(
        x, 2, *size, kernel_initializer=tf.ones_initializer(), bias_initializer=tf.ones_initializer(),
        kernel_regularizer=tf.nn.l2_loss, bias_regularizer=tf.reduce_sum, activity_regularizer=tf.reduce_max,
        kernel_constraint=lambda w: hf.minimum(w, 0.25), bias_constraint=lambda b: hf.minimum(b, 0.5),
    )  # fmt: skip
    assert len(tf.losses.get_regularization_losses()) == 3
    train = tf.train.GradientDescentOptimizer(0.01).minimize(-tf.reduce_sum(out))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        penalties = sess.run(tf.losses.get_regularization_losses())
        count = float(np.prod([int(n) for n in tf.trainable_variables()[0].shape]))
        assert penalties[:2] == [count / 2, 2.0] and penalties[2] == sess.run(out).max()
        sess.run(train)
        kernel, bias = sess.run(tf.trainable_variables())
        assert kernel.max() == 0.25 and bias.max() == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda cell: tf.nn.rnn_cell.MultiRNNCell([cell], state_is_tuple=False),
        lambda cell: tf.nn.rnn_cell.DropoutWrapper(cell, state_keep_prob=0.5),
        lambda cell: tf.nn.rnn_cell.DropoutWrapper(cell, variational_recurrent=True),
    ],
)
def test_cells_refuse_what_they_do_not_do(make: Callable[[object], object]) -> None:
    with pytest.raises(NotImplementedError, match="in hybridflow"):
        make(tf.nn.rnn_cell.GRUCell(2))


def test_arrays_of_parts_that_are_not_known_say_what_to_give() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    found = tf.TensorArray(tf.float32, 3).write(0, x).stack()
    with tf.Session() as sess, pytest.raises(tf.errors.UnimplementedError, match="element_shape"):
        sess.run(found, {x: np.zeros((2, 2))})
    with pytest.raises(tf.errors.UnimplementedError, match="do not grow"):
        tf.TensorArray(tf.float32, 0, dynamic_size=True)
    with pytest.raises(ValueError, match="int32, of an array of float32"):
        tf.TensorArray(tf.float32, 1).write(0, tf.constant(1))


def test_tensors_print_as_in_tensorflow() -> None:
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    assert str(x) == 'Tensor("x:0", shape=(2, 3), dtype=float32)'
    assert str(tf.placeholder(tf.int32, name="y")) == 'Tensor("y:0", dtype=int32)'


def test_operations_have_their_arguments_as_attributes() -> None:
    product = tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]), transpose_b=True).op
    assert product.get_attr("transpose_b") is True and product.get_attr("transpose_a") is False
    pictures = tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), strides=[1, 1, 1, 1], padding="SAME").op
    assert pictures.get_attr("strides") == [1, 1, 1, 1] and pictures.get_attr("padding") == "SAME"
    assert pictures.node_def.attr["data_format"] == "NHWC"


STATES = {
    "Adam": (["beta1_power", "beta2_power", "w/Adam", "w/Adam_1"], ["m", "v"]),
    "RMSProp": (["w/RMSProp", "w/RMSProp_1"], ["momentum", "rms"]),
    "GradientDescent": ([], []),
    "Ftrl": (["w/Ftrl", "w/Ftrl_1"], ["accum", "linear"]),
    "Adadelta": (["w/Adadelta", "w/Adadelta_1"], ["accum", "accum_update"]),
    "Adagrad": (["w/Adagrad"], ["accumulator"]),
}


@pytest.mark.parametrize("name", STATES)
def test_optimizers_make_the_variables_that_tensorflow_makes(name: str) -> None:
    names, slots = STATES[name]
    w = tf.Variable([1.0, 2.0], name="w")
    optimizer = getattr(tf.train, f"{name}Optimizer")(0.1)
    optimizer.minimize(tf.reduce_sum(w * w))
    assert [v.op.name for v in tf.global_variables()] == ["w", *names]
    assert [v.op.name for v in optimizer.variables()] == sorted(names)
    assert optimizer.get_slot_names() == slots


def test_adam_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Its steps are those of the paper with powers of the betas in float32; they are saved beside the averages."""
    w = tf.Variable([1.0, -2.0])
    step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w**4))
    expected, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for t in range(1, 6):
            sess.run(step)
            g = 4 * expected**3
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            expected = expected - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
            np.testing.assert_allclose(sess.run(w), expected, rtol=1e-5)
        saver = tf.train.Saver()
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run(step)
        once = sess.run(w)
    with tf.Session() as sess:
        saver.restore(sess, path)
        sess.run(step)
        np.testing.assert_array_equal(sess.run(w), once)


@pytest.mark.parametrize(
    "terms, error, text",
    [
        (lambda: [tf.zeros([2]), tf.zeros([3])], ValueError, "compatible"),
        (lambda: [tf.zeros([2]), tf.zeros([])], ValueError, "equal rank"),
        (lambda: [tf.zeros([2]), tf.zeros([2], tf.int32)], TypeError, "float32, int32"),
        (lambda: [tf.zeros([2]), [1, 2]], TypeError, "float32, int32"),
        (list, ValueError, "at least one"),
    ],
)
def test_sums_are_of_tensors_alike(terms: Callable[[], list], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tf.add_n(terms())


def test_sums_of_what_is_not_known_before() -> None:
    x, y, v = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32), tf.Variable([1.0, 2.0])
    found = [tf.add_n([x, x, v]), tf.add_n([x, y, [1.0, 2.0]]), tf.add_n([tf.shape(x), [1]])]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run(found, {x: [1.0, 2.0], y: [5.0, 6.0]})
        assert [value.tolist() for value in values] == [[3, 6], [7, 10], [3]]
        with pytest.raises(ValueError, match="compatible"):
            sess.run(tf.add_n([x, y]), {x: [1.0], y: [1.0, 2.0]})


def test_layers_are_objects_that_share_their_variables() -> None:
    layer = tf.layers.Dense(2, tf.nn.relu, kernel_initializer=tf.ones_initializer())
    found = [layer(tf.ones([1, 3])), layer(tf.ones([2, 3]) * 2)]
    named = tf.layers.Dense(units=1, name="out")(found[0])
    other = tf.layers.Dense(1)
    other(named)
    norm = tf.layers.BatchNormalization()
    flat = tf.layers.Flatten()(norm(tf.layers.Conv2D(4, 3, padding="same")(tf.ones([1, 4, 4, 1])), training=True))
    assert [v.name for v in layer.weights] == ["dense/kernel:0", "dense/bias:0"] and layer.kernel is layer.weights[0]
    assert [v.name for v in other.trainable_weights] == ["dense_1/kernel:0", "dense_1/bias:0"]
    assert (layer.name, other.name, named.op.name) == ("dense", "dense_1", "out/BiasAdd")
    assert [len(x) for x in (norm.weights, norm.trainable_weights, norm.non_trainable_weights)] == [4, 2, 2]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, two = sess.run(found)
        assert one.tolist() == [[3.0, 3.0]] and two.tolist() == [[6.0, 6.0], [6.0, 6.0]]
        assert sess.run(flat).shape == (1, 64)
    with pytest.raises(TypeError, match="no argument 'unit'"):
        tf.layers.Dense(unit=2)


def test_layers_of_keras_lend_every_weight_and_train_none_that_is_frozen() -> None:
    class Pair(NamedTuple):
        factor: Any
        rest: list[Any]

    class Scaled(tf.keras.layers.Layer):
        def build(self, input_shape: Any) -> None:
            weights = [self.add_weight(shape=(2,), initializer="ones", name=name) for name in "abcd"]
            self.pair, self.nested = Pair(weights[0], weights[1:2]), {"c": ((weights[2],), [weights[3]])}

        def call(self, x: Any) -> Any:
            ((c,), (d,)) = self.nested["c"]
            return x * self.pair.factor * self.pair.rest[0] * c * d

    with tf.Graph().as_default():
        base = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones")])
        base.trainable = False
        model = tf.keras.Sequential([base, Scaled()])
        y = model(tf.ones([1, 3]))
        own = [v.name for v in model.variables]
        assert len(tf.trainable_variables()) == 4 and len(tf.global_variables()) == len(own) == 6
        step = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(y))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step)
            found = dict(zip([v.name for v in tf.global_variables()], sess.run(tf.global_variables())))
    assert [value.tolist() for name, value in found.items() if "dense" in name] == [[[1.0, 1.0]] * 3, [0.0, 0.0]]
    scaled = [value for name, value in found.items() if "scaled" in name]
    np.testing.assert_allclose(scaled, np.full((4, 2), 1 - 0.01 * 3), rtol=1e-6)
    assert all(v.numpy().max() == v.numpy().min() for v in model.variables)  # those of the layer are as they were
    assert isinstance(model.layers[1].pair, Pair) and model.layers[1].pair.factor.numpy().tolist() == [1.0, 1.0]


def test_texts_of_files_are_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\nbc\n")
    lines = tf.data.TextLineDataset(str(tmp_path / "a.txt"))
    pair = lines.batch(2).make_one_shot_iterator().get_next()
    line = lines.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(line) == b"1" and sess.run(line) == b"bc"
        assert sess.run(pair).tolist() == [b"1", b"bc"]


def test_functions_of_tensorflow_1_are_activations_of_layers() -> None:
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(4, activation=tf.nn.relu, input_shape=(3,)),
            tf.keras.layers.Dense(1, activation=tf.nn.sigmoid),
        ]
    )
    assert model.predict(np.zeros((2, 3), "float32"), verbose=0).tolist() == [[0.5], [0.5]]
