"""Trains three small models under strategies, and prints digests of all their state: run by test_processes.py."""

import hashlib
import sys

import numpy as np

import hybridflow as hf
from hybridflow.optimizers import sharded_state
from hybridflow.tracing import replica_axes

sharded_state.SMALLEST = 30  # so that some state is shared out, and some is not

if len(sys.argv) > 1:  # bytes of a bucket
    replica_axes.BUCKET = int(sys.argv[1])

rng = np.random.default_rng(0)
images = rng.normal(size=(44, 6, 6, 1)).astype(np.float32)
labels = rng.integers(0, 3, 44)
words = rng.integers(0, 20, (44, 5))


def show(name, *values):
    text = b"".join(np.ascontiguousarray(np.asarray(value)).tobytes() for value in values)
    print(name, hashlib.sha256(text).hexdigest()[:16], flush=True)


def network():
    """fit, evaluate and predict, with dropout and Adam; the last batch of an epoch is short, and smaller than S."""
    hf.random.set_seed(1)
    with hf.distribute.MirroredStrategy(replicas=8, shard_optimizer=True).scope():
        model = hf.Sequential(
            [
                hf.layers.Flatten(),
                hf.layers.Dense(8, activation="relu"),
                hf.layers.Dropout(0.2),
                hf.layers.Dense(3, kernel_regularizer="l2"),
            ]
        )
        loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
    history = model.fit(images[:37], labels[:37], batch_size=16, epochs=3, verbose=0)
    found = model.evaluate(images, labels, batch_size=20, verbose=0)
    if hf.distribute.process_count() > 1:
        kernel = model.optimizer.variables[2]
        assert kernel.part.shape[0] < kernel.numpy().size / 2
    show("network", *model.variables, *model.optimizer.variables, history.history["loss"], found)
    show("predictions", model.predict(images, batch_size=30, verbose=0))


def convolutional():
    """A loop of its own, with batch normalization, and metrics in the replicas."""
    hf.random.set_seed(2)
    strategy = hf.distribute.MirroredStrategy(replicas=6)
    model = hf.Sequential(
        [
            hf.layers.Conv2D(4, 3, activation="relu"),
            hf.layers.BatchNormalization(momentum=0.5),
            hf.layers.Flatten(),
            hf.layers.Dense(3),
        ]
    )
    loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer, metric = hf.optimizers.SGD(0.1, momentum=0.9), hf.metrics.SparseCategoricalAccuracy()

    @hf.function
    def step(batch):
        def replica(x, y):
            with hf.GradientTape() as tape:
                p = model(x, training=True)
                value = loss(y, p)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
            metric.update_state(y, p)
            return value

        values = strategy.run(replica, args=batch)
        return strategy.reduce("sum", values), strategy.reduce("max", values)

    data = hf.data.Dataset.from_tensor_slices((images, labels)).shuffle(44).batch(12)
    for _ in range(2):
        for batch in strategy.distribute_dataset(data):
            total, largest = step(batch)
    show("convolutional", *model.variables, *optimizer.variables, metric.result(), total, largest)


def embedding():
    """Look-ups, whose gradients are rows; and collectives that move values."""
    hf.random.set_seed(3)
    strategy = hf.distribute.MirroredStrategy(replicas=4)
    table, optimizer = hf.layers.Embedding(20, 6), hf.optimizers.Adagrad(0.1)
    table(words)
    weights = table.trainable_variables[0]

    @hf.function
    def step(batch):
        def replica(ids):
            with hf.GradientTape() as tape:
                found = table(ids)
                others = hf.distribute.all_gather(hf.sum(found, axis=(0, 1)))
                turned = hf.distribute.permute(found, [(0, 1), (1, 0), (2, 3)])
                value = hf.sum(found**2) + hf.sum(others**2) * 1e-3 + hf.sum(turned * found)
            optimizer.apply_gradients([(tape.gradient(value, weights), weights)])
            parts = hf.distribute.reduce_scatter(hf.arange(8.0) * value)
            return parts, hf.distribute.all_to_all(parts + hf.zeros(4)[:, None], split=0, concat=1)

        return strategy.run(replica, args=(batch,))

    for _ in range(3):
        parts, exchanged = step(strategy.distribute_batch(words))
    show("embedding", weights, *optimizer.variables, strategy.gather(parts), strategy.gather(exchanged))


def mesh():
    """Axes, of which processes share the outermost one out."""
    P = hf.distribute.P
    axes = hf.distribute.make_mesh({"data": 4, "model": 2})

    @hf.function
    @hf.distribute.shard_map(mesh=axes, in_specs=(P("data", "model"), P("model")), out_specs=(P("data"), P()))
    def product(x, w):
        y = hf.distribute.all_reduce(x @ w, axis="model")
        return y, hf.distribute.all_reduce(hf.sum(y, axis=0), axis="data")

    show("mesh", *product(images.reshape(44, 36), rng.normal(size=(36, 5)).astype(np.float32)))


network()
convolutional()
embedding()
mesh()
