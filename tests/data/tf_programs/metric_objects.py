import tensorflow as tf

M = tf.keras.metrics
y, p = [0, 1, 1, 0], [0.1, 0.8, 0.4, 0.6]
RESULT = {}
for metric in (
    M.BinaryAccuracy(),
    M.AUC(),
    M.Precision(),
    M.Recall(),
    M.MeanSquaredError(),
    M.MeanAbsoluteError(),
    M.RootMeanSquaredError(),
    M.TruePositives(),
    M.FalseNegatives(),
    M.BinaryCrossentropy(),
):
    metric.update_state(y, p)
    RESULT[metric.name] = metric.result()
mean = M.Mean()
mean.update_state([1.0, 2.0, 6.0])
mean.update_state(3.0)
accuracy = M.CategoricalAccuracy()
accuracy.update_state([[0, 1], [1, 0]], [[0.4, 0.6], [0.3, 0.7]])
sparse = M.SparseCategoricalAccuracy()
sparse.update_state([1, 0], [[0.4, 0.6], [0.3, 0.7]])
total = M.Sum()
total(5.0)
total(7.0)
RESULT |= {"mean": mean.result(), "categorical": accuracy.result(), "sparse": sparse.result(), "total": total.result()}
mean.reset_state()
RESULT["reset"] = mean.result()
