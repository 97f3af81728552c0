import tensorflow as tf

pairs = tf.data.Dataset.range(3).map(lambda x: [x, x + 1])
held = tf.data.Dataset.from_tensor_slices(([1, 2], [3, 4])).map(lambda a, b: {"both": [a, b]})
later = pairs.map(lambda a, b: [a * b, a - b, [a, b]], num_parallel_calls=2).batch(3)
iterator = iter(tf.data.Dataset.range(2))
taken = []
while True:
    found = iterator.get_next_as_optional()
    if not found.has_value():
        break
    taken.append(int(found.get_value()))
RESULT = {
    "kinds": [isinstance(element, tuple) for element in pairs],
    "values": [[int(a), int(b)] for a, b in pairs],
    "in dicts": [element["both"].numpy() for element in held],
    "specs": [list(spec.shape) for spec in later.element_spec],
    "later": [part.numpy() for part in next(iter(later))],
    "windows": [[int(x) for x in part] for part in tf.data.Dataset.range(5).window(2)],
    "is": [isinstance(x, tf.data.Dataset) for x in (pairs, later, pairs.take(1), tf.data.Dataset.zip(pairs, held))],
    "taken": taken,
    "empty": bool(iterator.get_next_as_optional().has_value()),
    "optional": int(tf.experimental.Optional.from_value(3).get_value()),
    "size": tf.TensorArray(tf.float32, 3).size().numpy().item(),
    "places": tf.unravel_index([5, 7], [3, 4]).numpy(),
    "keras places": [x.numpy() if hasattr(x, "numpy") else x for x in tf.keras.ops.unravel_index([5, 0, 11], (3, 4))],
}
