import tensorflow as tf

board = tf.constant([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])


@tf.function
def step(board):
    total = sum(tf.roll(board, [i, j], axis=[0, 1]) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return tf.cast((total == 3) | ((board == 1) & (total == 2)), tf.int32)


for _ in range(4):
    board = step(board)
RESULT = {"board": board, "alive": tf.reduce_sum(board)}
