import tensorflow as tf
import numpy as np

a = tf.constant(np.random.default_rng(0).normal(size=(4, 4)))
s = a @ tf.transpose(a) + 0.1 * tf.eye(4, dtype=tf.float64)
e, v = tf.linalg.eigh(s)
u_s, u, vv = tf.linalg.svd(a)
q, r = tf.linalg.qr(a)
RESULT = {
    "e": e,
    "rec": tf.matmul(v, tf.matmul(tf.linalg.diag(e), v, transpose_b=True)),
    "sv": u_s,
    "svd": u @ tf.linalg.diag(u_s) @ tf.transpose(vv),
    "qr": q @ r,
    "det": tf.linalg.det(a),
    "trace": tf.linalg.trace(a),
    "norms": [tf.norm(a), tf.norm(a, ord=1), tf.norm(a, ord=np.inf, axis=1)],
    "expm": tf.linalg.expm(a * 0.1),
    "pinv": tf.linalg.pinv(a[:, :2]),
    "lstsq": tf.linalg.lstsq(a[:, :2], a[:, 2:3]),
    "band": tf.linalg.band_part(a, 1, 0),
    "rank": tf.linalg.matrix_rank(a),
    "cross": tf.linalg.cross([1.0, 2, 3], [4.0, 5, 6]),
    "tri": tf.linalg.triangular_solve(tf.linalg.cholesky(s), a),
    "lu": tf.linalg.lu(a)[0],
    "matvec": tf.linalg.matvec(a, [1.0, 2, 3, 4])
    if False
    else tf.linalg.matvec(a, tf.constant([1.0, 2, 3, 4], tf.float64)),
    "td": tf.tensordot(a, a, [[0], [1]]),
}
