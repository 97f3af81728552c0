import numpy as np
import tensorflow as tf

RESULT = {}
a = np.arange(12, dtype="float32").reshape(3, 4) - 5


def P(n, *xs):
    RESULT[n] = [np.asarray(x).astype("f8").tolist() for x in xs]


# Rows with a negative number belong to no segment.
for n in ("sum", "mean", "max", "min", "prod", "sqrt_n"):
    P("segments " + n, getattr(tf.math, "unsorted_segment_" + n)(a, [1, -1, 0], 2))
P("bincount rows", tf.math.bincount([[1, 2, 2], [0, 0, 1]], axis=-1))
P("bincount rows, weights", tf.math.bincount([[1, 2, 2], [0, 0, 1]], weights=[[0.5, 1, 2], [3, 4, 5]], axis=-1))
P("bincount rows, limits", tf.math.bincount([[1, 2], [0, 4]], maxlength=3, binary_output=True, axis=-1))
P("rank", tf.linalg.matrix_rank(np.diag([100.0, 1.0, 0.01])[None].repeat(2, 0), tol=0.1))
P("tensor_diag", tf.linalg.tensor_diag(a[:2, :2]))
P("ndtri", tf.math.ndtri(np.array([1e-30, 1e-10, 0.3, 0.9999], "f")), tf.math.ndtri(np.array([1e-300, 1e-4])))
P("erfcinv", tf.math.erfcinv(np.array([1e-30, 1e-10, 0.3, 1.99, 0.0, 2.0], "f")))
whole = -np.arange(1, 10, dtype=np.int32).reshape(1, 3, 3, 1)
P("argmax of ints", *tf.nn.max_pool_with_argmax(whole, 2, 2, "SAME"))
one_hot = tf.one_hot([0, 2], 3, 5, 1)
P("one_hot", one_hot)
RESULT["one_hot dtype"] = one_hot.dtype.name

# Boxes
P(
    "gray",
    tf.image.draw_bounding_boxes(np.zeros((1, 6, 6, 1), "f"), [[[0.1, 0.1, 0.6, 0.6], [0.3, 0.3, 0.9, 0.9]]], None),
)
boxes = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.6, 1, 1.6], [2, 2, 3, 3]]
P("soft", *tf.image.non_max_suppression_with_scores(boxes, [0.9, 0.8, 0.7, 0.6], 4, 0.2, 0.05, 0.5))
P("none", tf.image.non_max_suppression_overlaps(np.eye(2, dtype="f"), [0.5, 0.6], 0))

# Keras
ops = tf.keras.ops
x = np.arange(24, dtype="float32").reshape(2, 3, 4)
P("batch_dot", tf.keras.backend.batch_dot(tf.constant(x), tf.constant(x[:, 0])))
for n, order, axes in (("fro", None, (0, 1)), ("one", 1, (0, 2)), ("inf", float("inf"), (1, 0))):
    P("norm " + n, ops.norm(x, order, axes), ops.norm(x, order, axes, keepdims=True))
P("median", ops.median(np.array([1, 2, 3, 4])), ops.quantile(np.array([[1, 2], [5, 9]]), 0.25, axis=0))
P("digitize", ops.digitize(np.array([0, 1, 2]), [0.5, 1.5]), ops.digitize(x[0, 0], [0.5, 2.0]))
P("heaviside", ops.heaviside(np.array([-1, 0, 2]), 0.5))
first = np.arange(32, dtype="float32").reshape(1, 2, 4, 4)

P("channels first", ops.max_pool(first, 2, data_format="channels_first"), ops.average_pool(x, 2))
P("conv", ops.conv(x, np.ones((2, 4, 1), "f"), data_format="channels_last"))
P("nan_to_num", ops.nan_to_num(np.array([np.nan, np.inf, -np.inf], "f"), nan=3.0, posinf=9.0, neginf=-9.0))
P("bins", tf.keras.layers.Discretization([0.5, 1.5])(np.array([0, 1, 2])))
