import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
t, p = rng.integers(0, 2, (6, 3)).astype("float32"), rng.random((6, 3)).astype("float32") * 0.9 + 0.05
one = np.eye(3, dtype="float32")[[0, 1, 2, 0, 1, 2]]
prob = p / p.sum(1, keepdims=True)
L, M = tf.keras.losses, tf.keras.metrics
RESULT = {
    "loss": {
        n: float(getattr(L, n)()(t, p))
        for n in (
            "MeanSquaredError",
            "MeanAbsoluteError",
            "Huber",
            "LogCosh",
            "BinaryCrossentropy",
            "KLDivergence",
            "Poisson",
            "CosineSimilarity",
            "Hinge",
            "SquaredHinge",
            "BinaryFocalCrossentropy",
            "Dice",
            "Tversky",
        )
    },
    "cat": {
        n: float(getattr(L, n)()(one, prob))
        for n in ("CategoricalCrossentropy", "CategoricalHinge", "CategoricalFocalCrossentropy")
    },
}
for n in (
    "Precision",
    "Recall",
    "AUC",
    "BinaryAccuracy",
    "MeanSquaredError",
    "RootMeanSquaredError",
    "CosineSimilarity",
    "BinaryIoU",
    "TruePositives",
    "FalseNegatives",
    "LogCoshError",
    "Hinge",
):
    m = getattr(M, n)()
    m.update_state(t, p)
    RESULT[n] = float(np.mean(m.result()))
for n, kw in (
    ("CategoricalAccuracy", {}),
    ("TopKCategoricalAccuracy", {"k": 2}),
    ("F1Score", {"average": "macro"}),
    ("CategoricalHinge", {}),
    ("OneHotMeanIoU", {"num_classes": 3}),
    ("CategoricalCrossentropy", {}),
    ("PearsonCorrelation", {}),
    ("R2Score", {}),
):
    m = getattr(M, n)(**kw)
    m.update_state(one, prob)
    RESULT[n] = float(np.mean(m.result()))
m = M.MeanIoU(num_classes=3)
m.update_state([0, 1, 2, 2], [0, 1, 1, 2], sample_weight=[1, 1, 1, 2])
RESULT["miou"] = m.result()
RESULT["fn"] = [L.categorical_hinge(one, prob), M.sparse_categorical_accuracy([0, 1], prob[:2])]
RESULT["cm"] = tf.math.confusion_matrix([0, 1, 2], [0, 2, 2])
RESULT["ls"] = float(L.CategoricalCrossentropy(label_smoothing=0.1)(one, prob, sample_weight=tf.range(6.0)))
