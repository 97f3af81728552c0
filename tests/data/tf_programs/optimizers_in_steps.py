import tensorflow as tf

RESULT = {}
O = tf.keras.optimizers
for make in (
    lambda: O.SGD(0.1),
    lambda: O.SGD(learning_rate=0.1, momentum=0.9, nesterov=True),
    lambda: O.Adam(0.1),
    lambda: O.Adam(0.1, amsgrad=True),
    lambda: O.AdamW(0.1, weight_decay=0.05),
    lambda: O.RMSprop(0.1, rho=0.8, momentum=0.5),
    lambda: O.Adagrad(0.1),
    lambda: O.Adadelta(1.0),
    lambda: O.Adamax(0.1),
    lambda: O.Nadam(0.1),
    lambda: O.Ftrl(0.1),
    lambda: O.Lion(0.1),
    lambda: O.Adam(0.1, clipnorm=0.5),
    lambda: O.get("adam"),
):
    optimizer = make()
    v = tf.Variable([1.0, -2.0, 3.0])
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v * tf.constant([1.0, 2.0, 0.5]))
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    RESULT[f"{len(RESULT)} {type(optimizer).__name__}"] = v.numpy()
