import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

title = keras.Input(shape=(5,), dtype="int32", name="title")
tags = keras.Input(shape=(3,), name="tags")
t = layers.Embedding(10, 4, embeddings_initializer=keras.initializers.Constant(0.1))(title)
t = layers.GlobalAveragePooling1D()(t)
x = layers.concatenate([t, tags])
priority = layers.Dense(1, name="priority", kernel_initializer="ones")(x)
department = layers.Dense(2, name="department", kernel_initializer="ones", activation="softmax")(x)
model = keras.Model(inputs=[title, tags], outputs={"priority": priority, "department": department})
model.compile(
    optimizer=keras.optimizers.RMSprop(1e-2),
    loss={"priority": keras.losses.MeanSquaredError(), "department": keras.losses.CategoricalCrossentropy()},
    loss_weights={"priority": 1.0, "department": 0.2},
)
a = np.arange(20).reshape(4, 5) % 10
b = np.linspace(0, 1, 12).reshape(4, 3).astype("float32")
h = model.fit(
    {"title": a, "tags": b},
    {"priority": np.ones((4, 1), "float32"), "department": np.eye(2, dtype="float32")[[0, 1, 0, 1]]},
    epochs=3,
    batch_size=2,
    shuffle=False,
    verbose=0,
)
out = model.predict({"title": a, "tags": b}, verbose=0)
RESULT = {
    "loss": h.history["loss"],
    "priority": out["priority"],
    "department": out["department"],
    "names": sorted(model.output_names) if hasattr(model, "output_names") else None,
    "shapes": {k: list(v.shape) for k, v in out.items()},
    "count": model.count_params(),
}
