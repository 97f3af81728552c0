import tensorflow as tf

O = tf.keras.optimizers
RESULT = {}
for name, opt in {
    "sgd": O.SGD(0.1, momentum=0.9),
    "adam": O.Adam(0.1),
    "amsgrad": O.Adam(0.1, amsgrad=True),
    "adamw": O.AdamW(0.1, weight_decay=0.01),
    "rms": O.RMSprop(0.1, centered=True, momentum=0.5),
    "adagrad": O.Adagrad(0.1),
    "adadelta": O.Adadelta(1.0),
    "adamax": O.Adamax(0.1),
    "nadam": O.Nadam(0.1),
    "ftrl": O.Ftrl(0.1, l1_regularization_strength=0.01),
    "lion": O.Lion(0.1),
    "adafactor": O.Adafactor(0.1),
    "lamb": O.Lamb(0.1),
}.items():
    v = tf.Variable([1.0, -2.0, 3.0])
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v**2 * tf.constant([1.0, 2.0, 3.0]))
        opt.apply_gradients([(tape.gradient(loss, v), v)])
    RESULT[name] = v.numpy()
v = tf.Variable(1.0)
opt = O.get({"class_name": "SGD", "config": {"learning_rate": 0.25}})
with tf.GradientTape() as tape:
    loss = v * 3
opt.apply_gradients(zip([tape.gradient(loss, v)], [v]))
RESULT["get"] = v
RESULT["cfg"] = O.Adam(0.2, beta_1=0.8).get_config()["beta_1"]
