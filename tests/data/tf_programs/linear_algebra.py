import tensorflow as tf

a = tf.constant([[4.0, 1.0], [1.0, 3.0]], tf.float64)
b = tf.constant([[1.0], [2.0]], tf.float64)
s, u, v = tf.linalg.svd(a)
values, vectors = tf.linalg.eigh(a)
q, r = tf.linalg.qr(a)
RESULT = {
    "cholesky": tf.linalg.cholesky(a),
    "solve": tf.linalg.solve(a, b),
    "cholesky_solve": tf.linalg.cholesky_solve(tf.linalg.cholesky(a), b),
    "triangular": tf.linalg.triangular_solve(tf.linalg.cholesky(a), b),
    "inv": tf.linalg.inv(a),
    "det": tf.linalg.det(a),
    "logdet": tf.linalg.logdet(a),
    "singular": s,
    "svd": u @ tf.linalg.diag(s) @ tf.transpose(v),
    "eigenvalues": values,
    "eigh": vectors @ tf.linalg.diag(values) @ tf.transpose(vectors),
    "qr": q @ r,
    "trace": tf.linalg.trace(a),
    "norm": tf.norm(a),
    "norm1": tf.norm(a, ord=1, axis=1),
    "band": tf.linalg.band_part(tf.ones([3, 3]), 1, 0),
    "diag": tf.linalg.diag([1.0, 2.0]),
    "diag_above": tf.linalg.diag([1.0, 2.0], k=1),
    "diag_part": tf.linalg.diag_part(a),
    "set_diag": tf.linalg.set_diag(a, tf.zeros([2], tf.float64)),
    "lstsq": tf.linalg.lstsq(tf.constant([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), tf.constant([[1.0], [2.0], [2.0]])),
    "cross": tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    "pinv": tf.linalg.pinv(a),
    "normalize": tf.linalg.normalize([3.0, 4.0])[0],
}
