import tensorflow as tf

tree = {"b": [1, 2], "a": (3, {"c": 4})}
RESULT = {
    "mapped": tf.nest.map_structure(lambda x: x * 10, tree)["a"][1]["c"],
    "two": tf.nest.map_structure(lambda x, y: x + y, [1, (2,)], [10, (20,)]),
    "flat": tf.nest.flatten(tree),
    "packed": tf.nest.pack_sequence_as([0, [0]], [1, 2]),
    "nested": [tf.nest.is_nested([1]), tf.nest.is_nested(1)],
}
