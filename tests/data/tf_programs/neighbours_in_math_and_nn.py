import numpy as np
import tensorflow as tf

RESULT = {}
rng = np.random.default_rng(3)


def P(n, x):
    xs = x if isinstance(x, (tuple, list)) else [x]
    RESULT[n] = [np.asarray(v).astype("f8").round(4).ravel()[::3].tolist() for v in xs if v is not None]


x = tf.constant(rng.random((2, 9, 9, 2)), tf.float32)
f = tf.constant(rng.random((3, 3, 2, 3)), tf.float32)
P("atrous", tf.nn.atrous_conv2d(x, f, 2, "SAME"))
P("conv", tf.nn.convolution(x, f, strides=2, padding="SAME"))
x1 = tf.constant(rng.random((2, 7, 3)), tf.float32)
P("c1t", tf.nn.conv1d_transpose(x1, tf.constant(rng.random((3, 4, 3)), tf.float32), [2, 14, 4], 2))
P("pool", tf.nn.pool(x, [2, 2], "AVG", strides=[2, 2]))
P("argmax", tf.nn.max_pool_with_argmax(x, 3, 2, "SAME"))
P("argmax2", tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=True))
P("dil", tf.nn.dilation2d(x, f[..., 0], [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]))
P("ero", tf.nn.erosion2d(x, f[..., 0], [1, 2, 2, 1], "VALID", "NHWC", [1, 1, 1, 1]))
P("wm", tf.nn.weighted_moments(x1, [0, 1], tf.constant(rng.random((2, 7, 3)), tf.float32)))
ss = tf.nn.sufficient_statistics(x1, [0, 1])
P("ss", ss)
P("nm", tf.nn.normalize_moments(ss[0], ss[1], ss[2], ss[3]))
P("cr", tf.nn.collapse_repeated(tf.constant([[1, 1, 2, 2, 1], [3, 3, 3, 4, 5]]), tf.constant([5, 4])))
P("lpl", tf.nn.log_poisson_loss(tf.constant([1.0, 3.0]), tf.constant([0.5, 0.7]), True))
d = tf.constant(rng.random((6, 2)), tf.float32)
ids = tf.constant([0, 0, 1, 3, 3, 3])
for n in ("max", "min", "prod"):
    P(n, getattr(tf.math, "segment_" + n)(d, ids))
    P("u" + n, getattr(tf.math, "unsorted_segment_" + n)(d, tf.constant([2, 0, 1, 0, 2, 2]), 3))
P("sqrtn", tf.math.unsorted_segment_sqrt_n(d, tf.constant([2, 0, 1, 0, 2, 2]), 4))
a = tf.constant(rng.standard_normal((3, 4, 4)), tf.float64)
P("expm", tf.linalg.expm(a))
P("lu", tf.linalg.lu(a))
l, p = tf.linalg.lu(a)
b = tf.constant(rng.random((3, 4, 2)))
P("lus", tf.linalg.lu_solve(l, p, b))
P("lui", tf.linalg.lu_matrix_inverse(l, p))
P("lur", tf.linalg.lu_reconstruct(l, p))
dg = tf.constant(rng.random((3, 5)) + np.array([[0], [3], [0]]))
P("tri", tf.linalg.tridiagonal_solve(dg, tf.constant(rng.random(5))))
P("trm", tf.linalg.tridiagonal_matmul(dg, tf.constant(rng.random((5, 2)))))
P("lbeta", tf.math.lbeta([1.5, 2.0, 3.0]))
P("i0", tf.math.bessel_i0([0.5, 2.0]))
P("lg", tf.math.lgamma([0.5, 3.2, -1.5]))
P("xl", tf.math.xlog1py([0.0, 2.0], [-1.0, 3.0]))
P("cls", tf.math.cumulative_logsumexp([[1.0, 2.0, 3.0]], axis=1, reverse=True, exclusive=False))
w = tf.constant(rng.random((50, 4)), tf.float32)
bb = tf.constant(rng.random(50), tf.float32)
lab = tf.constant([[1], [5], [20]], tf.int64)
inp = tf.constant(rng.random((3, 4)), tf.float32)
sv = (tf.constant([3, 5, 7, 9], tf.int64), tf.constant([[0.1], [0.2], [0.3]]), tf.constant([0.1, 0.2, 0.3, 0.4]))
P("nce", tf.nn.nce_loss(w, bb, lab, inp, 4, 50, sampled_values=sv))
P("ssl", tf.nn.sampled_softmax_loss(w, bb, lab, inp, 4, 50, sampled_values=sv))
c = tf.random.uniform_candidate_sampler(lab, 1, 10, False, 50)
P("ex", [c[1], c[2]])
