"""A tour of TensorFlow 2, as its notebooks give it, on ``hybridflow.compat.tf``: nothing but the import is another one.

    python examples/tour_of_tensorflow.py [--steps N] [--checkpoint DIR]

It goes from tensors to a saved function, and measures on the way: eagerly or as a graph, with ``jit_compile`` or
without, and how a pipeline of data is put together.  With a folder the training goes on where the last run ended.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hybridflow.compat.tf as tf


def heading(text: str) -> None:
    print(f"\n--- {text}")


def milliseconds(run: Callable[[], Any], times: int) -> float:
    """The least of three times that a call takes, after a first one that may compile."""
    run()
    found = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(times):
            run()
        found.append((time.perf_counter() - started) / times * 1e3)
    return min(found)


def tensors() -> None:
    heading("Tensors, and NumPy's arrays")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    print(x + np.ones((2, 2), np.float32))
    print(np.add(x.numpy(), 1), tf.reduce_mean(x).numpy(), tf.matmul(x, x, transpose_b=True).numpy().tolist())
    v = tf.Variable(x, name="v")
    v.assign_add(tf.ones_like(v))
    print(v.name, v.shape, v.dtype, v.numpy().tolist())


def gradients() -> None:
    heading("Gradients")
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    print("x ** 3 at 3:", y.numpy(), first.numpy(), outer.gradient(first, x).numpy())


@tf.function
def collatz(n: Any) -> Any:
    """Python's own statements, with conditions that are tensors."""
    steps = tf.constant(0)
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def graphs(times: int) -> dict[str, float]:
    heading("Graphs")
    print("steps from 27 to 1:", collatz(tf.constant(27)).numpy())
    cell = tf.keras.layers.LSTMCell(10)
    given, state = tf.zeros([10, 10]), [tf.zeros([10, 10])] * 2
    x = tf.random.normal([1000, 100])

    def elementwise(x: Any) -> Any:
        return tf.reduce_sum(tf.nn.sigmoid(x) * tf.tanh(x) + tf.exp(-tf.abs(x)), axis=1)

    programs: dict[str, Callable[[], Any]] = {
        "LSTM cell, eager": lambda: cell(given, state),
        "LSTM cell, graph": _bound(tf.function(cell), given, state),
        "elementwise, eager": lambda: elementwise(x),
        "elementwise, graph": _bound(tf.function(elementwise), x),
        "elementwise, jit_compile": _bound(tf.function(elementwise, jit_compile=True), x),
    }
    found = {name: milliseconds(run, times) for name, run in programs.items()}
    for name, time_ in found.items():
        print(f"{name:26} {time_:8.4f} ms")
    return found


def _bound(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: function(*args)


def images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """float32[count, 64] with a bright stripe, and which of eight stripes it is."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 8, count)
    pictures = random.random((count, 8, 8)).astype(np.float32)
    pictures[np.arange(count), labels] += 0.5
    return pictures.reshape(count, 64), labels


def keras() -> float:
    heading("A model and fit")
    x, y = images(2000)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(8)]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(x[:1600], y[:1600], epochs=5, batch_size=32, verbose=2)
    _, accuracy = model.evaluate(x[1600:], y[1600:], verbose=0)
    print(f"accuracy {accuracy:.2%}")
    return accuracy


def custom_loop(steps: int, folder: Path) -> list[float]:
    """A line through points, with a loop of one's own; the losses of the steps that were done now."""
    heading("A loop of one's own, and checkpoints")
    tf.random.set_seed(1)
    random = np.random.default_rng(1)
    x = tf.constant(random.normal(size=(200, 1)).astype(np.float32))
    y = 3 * x + 2 + tf.constant(random.normal(size=(200, 1)).astype(np.float32) * 0.1)
    line, optimizer = tf.keras.layers.Dense(1), tf.keras.optimizers.Adam(0.1)
    line(x)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(line(x) - y))
        gradients = tape.gradient(loss, line.trainable_variables)
        optimizer.apply_gradients(zip(gradients, line.trainable_variables))
        return loss

    checkpoint = tf.train.Checkpoint(line=line, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    first = int(optimizer.iterations.numpy())
    losses = [step().numpy().item() for _ in range(first, steps)]
    if losses:
        manager.save()
    print(f"steps {first} to {steps}: {line.kernel.numpy().item():.3f} x + {line.bias.numpy().item():.3f}")
    return losses


class ArtificialDataset(tf.data.Dataset):
    """Elements that take time to be opened, and to be read."""

    def _generator(count: int) -> Iterator[tuple[int]]:
        time.sleep(0.03)  # opening a file
        for number in range(count):
            time.sleep(0.005)  # reading an element
            yield (number,)

    def __new__(cls, count: int = 3) -> Any:
        return tf.data.Dataset.from_generator(
            cls._generator, output_signature=tf.TensorSpec(shape=(1,), dtype=tf.int64), args=(count,)
        )


def slow_map(number: Any) -> Any:
    tf.py_function(lambda: time.sleep(0.01), [], ())
    return number + 1


def pipelines() -> dict[str, float]:
    """Two epochs of 10 elements that are made, mapped and used, with what the pipeline does at the same time."""
    heading("Pipelines")

    def timed(dataset: Any) -> float:
        next(iter(dataset))  # which compiles what map does
        started = time.perf_counter()
        for _ in range(2):
            for _ in dataset:
                time.sleep(0.01)  # a step of training
        return time.perf_counter() - started

    auto = tf.data.AUTOTUNE
    files = tf.data.Dataset.range(2)
    programs = {
        "naive": ArtificialDataset(10),
        "prefetch": ArtificialDataset(10).prefetch(auto),
        "interleave": files.interleave(lambda _: ArtificialDataset(5)),
        "parallel interleave": files.interleave(lambda _: ArtificialDataset(5), num_parallel_calls=auto),
        "map": ArtificialDataset(10).map(slow_map),
        "parallel map": ArtificialDataset(10).map(slow_map, num_parallel_calls=auto),
        "map, cache": ArtificialDataset(10).map(slow_map).cache(),
        "all of it": files.interleave(lambda _: ArtificialDataset(5), num_parallel_calls=auto)
        .map(slow_map, num_parallel_calls=auto)
        .cache()
        .prefetch(auto),
    }
    found = {name: timed(dataset) for name, dataset in programs.items()}
    for name, seconds in found.items():
        print(f"{name:26} {seconds:6.2f} s")
    return found


class Scaled(tf.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = tf.Variable(factor)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x: Any) -> Any:
        return self.factor * x


def saved(folder: Path) -> None:
    heading("Saved functions")
    tf.saved_model.save(Scaled(2.5), str(folder))
    print(tf.saved_model.load(str(folder))(tf.constant([1.0, 2.0, 4.0])).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="steps of the loop of one's own in all (100)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where they are saved, and go on from")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tensors()
        gradients()
        graphs(200)
        keras()
        custom_loop(options.steps, options.checkpoint or Path(folder) / "line")
        pipelines()
        saved(Path(folder) / "scaled")


if __name__ == "__main__":
    main()
