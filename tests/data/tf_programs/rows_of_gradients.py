import tensorflow as tf

RESULT = {}
table = tf.Variable(tf.reshape(tf.range(12.0), (4, 3)))


def gradient(ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, ids) ** 2)
    return tape.gradient(loss, table)


for turn in range(4):  # the first ones are walked, later ones are compiled
    found = gradient([1, 3, 1])
    RESULT[f"eager {turn}"] = [isinstance(found, tf.IndexedSlices), found.values, found.indices]
    RESULT[f"whole {turn}"] = tf.convert_to_tensor(found)
nested = gradient([[1, 3], [1, 0]])
RESULT["nested"] = [list(nested.values.shape), nested.indices]
again = tf.IndexedSlices(nested.values * 2, nested.indices, nested.dense_shape)
RESULT["again"] = tf.convert_to_tensor(again)


@tf.function
def compiled(ids):
    found = gradient(ids)
    return found.values, found.indices


RESULT["compiled"] = [compiled(tf.constant([1, 3, 1])), compiled(tf.constant([2]))]
embedding = tf.keras.layers.Embedding(10, 4, embeddings_initializer="ones")
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(embedding(tf.constant([[1, 2]])) * 3.0)
(found,) = tape.gradient(loss, embedding.trainable_variables)
RESULT["embedding"] = [found.values, found.indices]
optimizer = tf.keras.optimizers.SGD(0.1)
optimizer.apply_gradients([(gradient([1, 1]), table)])
RESULT["step"] = table
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.gather(table, [2])) + tf.reduce_sum(table)
RESULT["of others, too"] = hasattr(tape.gradient(loss, table), "values")
