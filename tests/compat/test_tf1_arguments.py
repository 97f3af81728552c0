"""Arguments of functions of TensorFlow 1: heeded, or refused; loops and sequences in both directions."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.v1 as tf
from hybridflow.compat.v1 import graph, graph_stack


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """Each test has a default graph of its own."""
    graph.reset_default_graph()
    hf.random.set_seed(0)
    yield
    graph_stack.interactive(None)
    graph_stack.set_recording(None)
    graph.reset_default_graph()


def test_arguments_that_mean_something_are_refused_where_they_are_not_heeded() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    with pytest.raises(NotImplementedError, match="renorm"):
        tf.layers.batch_normalization(x, renorm=True)
    with pytest.raises(NotImplementedError, match="peepholes"):
        tf.nn.rnn_cell.LSTMCell(3, proj_clip=1.0)
    v = tf.Variable(1.0)
    with pytest.raises(NotImplementedError, match="defer_build"):
        tf.train.Saver([v], defer_build=True)
    for call in (
        lambda: tf.layers.batch_normalization(x, unknown=1),
        lambda: tf.nn.rnn_cell.LSTMCell(3, unknown=1),
        lambda: tf.train.Saver([v], unknown=1),
        lambda: tf.group(tf.no_op(), unknown=1),
        lambda: tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), unknown=1),
        lambda: tf.train.Scaffold(unknown=1),
        lambda: tf.data.TFRecordDataset("path", unknown=1),
        lambda: tf.train.CheckpointSaverHook("folder", save_steps=1, unknown=1),
    ):
        with pytest.raises(TypeError, match="unknown"):
            call()


def test_savers_pad_numbers_and_may_be_empty(tmp_path: Path) -> None:
    saver = tf.train.Saver(allow_empty=True)
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert saver.save(sess, str(tmp_path / "none")) is None
        path = tf.train.Saver(pad_step_number=True).save(sess, str(tmp_path / "model"), global_step=7)
        assert path == str(tmp_path / "model-00000007")
        tf.train.Saver().restore(sess, path)


def test_batch_normalization_heeds_constraints() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    tf.layers.batch_normalization(x, training=True, gamma_constraint=tf.abs, beta_constraint=tf.abs)
    gamma, beta = tf.trainable_variables()
    assert gamma.constraint is beta.constraint is tf.abs


@pytest.mark.parametrize("batch, time", [(0, 1), (1, 0), (0, 2), (2, 1), (-1, 0)])
def test_reverse_sequence(batch: int, time: int) -> None:
    values = np.random.RandomState(0).randn(4, 4, 4).astype(np.float32)
    lengths = [0, 1, 3, 4]
    expected = np.moveaxis(values.copy(), (batch, time), (0, 1))
    for row, length in zip(expected, lengths):
        row[:length] = row[:length][::-1].copy()
    x, n = tf.placeholder(tf.float32, [None, 4, None]), tf.placeholder(tf.int64, [None])
    found = tf.reverse_sequence(x, n, seq_axis=time, batch_axis=batch)
    with tf.Session() as sess:
        given = sess.run(found, {x: values, n: lengths})
    np.testing.assert_array_equal(given, np.moveaxis(expected, (0, 1), (batch, time)))


@pytest.mark.parametrize("lengths", [None, [3, 1]])
def test_static_bidirectional_rnn_is_the_dynamic_one(lengths: list[int] | None) -> None:
    values = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    start = tf.constant_initializer(0.1)
    x = tf.constant(values)
    with tf.variable_scope("both", initializer=start):
        cells = [tf.nn.rnn_cell.BasicRNNCell(5) for _ in range(2)]
        steps, last, first = tf.nn.static_bidirectional_rnn(
            *cells, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths
        )
    with tf.variable_scope("other", initializer=start):
        cells = [tf.nn.rnn_cell.BasicRNNCell(5) for _ in range(2)]
        outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, sequence_length=lengths, dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        own = sess.run([tf.stack(steps, 1), last, first])
        theirs = sess.run([tf.concat(outputs, 2), *states])
    for a, b in zip(own, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_functions_of_errors_and_factorials() -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        found = session.run([tf.lgamma(x), tf.digamma(x), tf.erfc(x)], {x: [0.5, 3.0]})
    wanted = [[0.5723649, 0.6931472], [-1.9635100, 0.9227843], [0.4795001, 2.209049e-05]]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def _value(make: Callable[[], Any], **feeds: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(make(), **feeds)


def test_as_many_draws_as_rows_stay_in_their_rows() -> None:
    drawn = _value(lambda: tf.multinomial([[100.0, 0.0], [0.0, 100.0]], 2))
    assert drawn.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("reduction", ["MEAN", "SUM_OVER_BATCH_SIZE"])
def test_means_over_nothing_are_zero(reduction: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    weights = 0.0 if reduction == "MEAN" else 1.0
    loss = tf.losses.mean_squared_error(x, 2 * x, weights, reduction=getattr(tf.losses.Reduction, reduction))
    rows = [1.0] if reduction == "MEAN" else []
    assert _value(lambda: loss, feed_dict={x: rows}) == 0.0


def test_diagonals_of_matrices_are_of_four_axes_or_matrices_by_row() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    whole = np.zeros((2, 2, 2, 2), np.float32)
    for i in range(2):
        for j in range(2):
            whole[i, j, i, j] = x[i, j]
    assert np.array_equal(_value(lambda: tf.diag(x)), whole)
    assert np.array_equal(_value(lambda: tf.matrix_diag(x)), [np.diag(row) for row in x])


def test_one_hot_has_the_values_that_it_is_given() -> None:
    found = tf.one_hot([0, 2], 3, 5, 1)
    assert found.dtype == tf.int32 and _value(lambda: found).tolist() == [[5, 1, 1], [1, 1, 5]]
    assert _value(lambda: tf.one_hot([1], 2, np.inf, 0.0)).tolist() == [[0.0, np.inf]]


def test_counters_of_steps_write_how_fast_they_are(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    step = tf.train.get_or_create_global_step()
    more = step.assign_add(1)
    hook = tf.train.StepCounterHook(every_n_steps=2, output_dir=str(tmp_path))
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        for _ in range(5):
            sess.run(more)
    (path,) = tmp_path.iterdir()
    events = [v for event in tf.train.summary_iterator(str(path)) for v in event.summary.value]
    assert [v.tag for v in events] == ["global_step/sec"] * 2 and all(v.simple_value > 0 for v in events)
    tf.summary.FileWriterCache.clear()


def test_lists_of_numbers_are_tensors_of_their_kind() -> None:
    seven = tf.constant([7, -8])
    found = _value(
        lambda: [
            tf.div([7, -8], [2, 3]), tf.div(seven, [2, 3]), tf.floordiv([7, -8], seven), tf.truediv([7], [2]),
            tf.add(tf.constant([1], tf.int64), [2]), tf.where([True, False, True], [[1], [2], [3]], [[4], [5], [6]]),
        ]
    )  # fmt: skip
    assert [x.tolist() for x in found] == [[3, -3], [3, -3], [1, 1], [3.5], [3], [[1], [5], [3]]]
    assert [x.dtype.name for x in found] == ["int32"] * 3 + ["float64", "int64", "int32"]


def test_arrays_become_tensors_of_the_graph() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    first, second = tf.split(x, [1, -1], 1)
    kept = tf.nn.dropout(x, keep_prob=1.0)
    loss = tf.losses.sigmoid_cross_entropy(np.zeros((2, 3)), x) - tf.losses.softmax_cross_entropy(np.eye(3)[:2], x)
    found = _value(lambda: [first, second, kept, loss])
    assert np.array_equal(found[0], x[:, :1]) and np.array_equal(found[1], x[:, 1:]) and np.array_equal(found[2], x)
    wide = x.astype(np.float64)
    own = np.log(np.exp(wide).sum(1)) - [wide[0, 0], wide[1, 1]]
    assert found[3] == pytest.approx(np.log1p(np.exp(wide)).mean() - own.mean(), rel=1e-5)


def test_what_a_wrapper_drops_has_a_seed() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(64)
    wrapped = tf.nn.rnn_cell.DropoutWrapper(cell, 1.0, 0.5, seed=3)
    out, _ = wrapped(tf.ones([1, 2]), cell.zero_state(1, tf.float32))
    drawn = []
    for _ in range(2):
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            drawn.append(sess.run(out)[0] == 0)
    assert np.array_equal(*drawn) and 0 < drawn[0].sum() < 64


def test_scaffolds_take_what_another_one_has() -> None:
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(x, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    first = tf.train.Scaffold(local_init_feed_dict={x: 3.0})
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(tf.train.Scaffold(copy_from_scaffold=first))) as sess:
        assert sess.run(v) == 3.0


def test_files_of_graphs_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    line = tf.data.TextLineDataset(str(path), "GZIP").make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert np.array([sess.run(line), sess.run(line)]).astype("U").tolist() == ["one", "two"]


def test_elements_of_shapes_are_numbers_where_programs_ask_for_it() -> None:
    shape = tf.TensorShape([16, None])
    assert shape.dims is not None
    assert shape.dims[0].is_compatible_with(None)
    assert not shape.dims[0].is_compatible_with(3)
    assert shape.dims[1].is_compatible_with(3)
    assert shape.dims[0].merge_with(16) == 16
    with pytest.raises(ValueError, match="not compatible"):
        shape.dims[0].merge_with(3)
    tf.enable_v2_tensorshape()
    try:
        assert (shape[0], shape[1], list(shape)) == (16, None, [16, None])
        assert tf.TensorShape(None)[0] is None
    finally:
        tf.disable_v2_tensorshape()
    assert shape[1] is not None


def test_datasets_are_iterated_where_functions_compute_at_once() -> None:
    dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3]).batch(2)
    with pytest.raises(RuntimeError, match="make an iterator"):
        iter(dataset)
    tf.enable_eager_execution()
    assert [x.numpy().tolist() for x in dataset] == [[1, 2], [3]]


def test_optimizers_and_old_methods_in_keras_models() -> None:
    tf.enable_eager_execution()

    class Twice(tf.keras.layers.Layer):  # type: ignore[misc, name-defined]
        def build(self, shape: Any) -> None:
            self.kernel = self.add_variable("kernel", shape=[int(shape[-1]), 2], initializer="ones")

        def call(self, x: Any) -> Any:
            return tf.matmul(x, self.kernel)

    assert Twice()(tf.ones([1, 3])).numpy().tolist() == [[3.0, 3.0]]
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(1,))])
    model.compile(optimizer=tf.train.GradientDescentOptimizer(0.1), loss="mse")
    ones = np.ones((2, 1), np.float32)
    model.fit(ones, ones, batch_size=2, verbose=0)
    assert abs(float(model.get_weights()[0][0, 0]) - 0.2) < 1e-6
