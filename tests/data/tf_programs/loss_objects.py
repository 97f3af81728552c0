import tensorflow as tf

y = tf.constant([[0.0, 1.0], [1.0, 0.0]])
p = tf.constant([[0.2, 0.7], [0.6, 0.3]])
K = tf.keras.losses
RESULT = {
    "mse": K.MeanSquaredError()(y, p),
    "none": K.MeanSquaredError(reduction="none")(y, p),
    "sum": K.MeanAbsoluteError(reduction="sum")(y, p),
    "weights": K.MeanSquaredError()(y, p, sample_weight=[1.0, 3.0]),
    "bce": K.BinaryCrossentropy()(y, p),
    "bce_logits": K.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)(y, p),
    "cce": K.CategoricalCrossentropy()(y, p),
    "scce": K.SparseCategoricalCrossentropy()(tf.constant([1, 0]), p),
    "huber": K.Huber(delta=0.2)(y, p),
    "hinge": K.Hinge()(y, p),
    "kld": K.KLDivergence()(y, p),
    "cosine": K.CosineSimilarity()(y, p),
    "logcosh": K.LogCosh()(y, p),
    "poisson": K.Poisson()(y, p),
    "f_mse": K.MSE(y, p),
    "f_mae": K.mae(y, p),
    "f_bce": K.binary_crossentropy(y, p),
    "f_cce": K.categorical_crossentropy(y, p),
    "f_scce": K.sparse_categorical_crossentropy(tf.constant([1, 0]), p),
    "f_hinge": K.hinge(y, p),
    "f_huber": K.huber(y, p),
    "f_cosine": K.cosine_similarity(y, p),
    "f_kld": K.kullback_leibler_divergence(y, p),
    "by_name": K.get("mse")(y, p),
}
