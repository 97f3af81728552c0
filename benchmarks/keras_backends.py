"""Keras's ``fit`` on hybridflow and on other backends: the time of a training step, by turns.

Each backend runs in a process of its own, because Keras has one for all.  The processes take turns, epoch by epoch.

    python benchmarks/keras_backends.py [--backends hybridflow jax torch] [--rounds 5] [--seconds 100]

No round begins after ``--seconds``; what was measured by then is printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

STEPS = 20
MODELS = ["mlp", "cnn", "transformer"]


def models() -> dict[str, tuple]:
    import keras
    import numpy as np
    from keras import layers

    keras.utils.set_random_seed(0)
    draw = np.random.default_rng(0)

    def mlp():
        return keras.Sequential([keras.Input((64,)), layers.Dense(128, "relu"), layers.Dense(10)])

    def cnn():
        return keras.Sequential(
            [
                keras.Input((28, 28, 1)),
                layers.Conv2D(16, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(32, 3, activation="relu"),
                layers.BatchNormalization(),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dropout(0.3),
                layers.Dense(10),
            ]
        )

    def transformer():
        tokens = keras.Input((32,), dtype="int32")
        x = layers.Embedding(500, 64)(tokens)
        for _ in range(2):
            attended = layers.MultiHeadAttention(4, 16)(x, x)
            x = layers.LayerNormalization()(x + attended)
            x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(128, "gelu")(x)))
        return keras.Model(tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))

    labels = draw.integers(0, 10, 32 * STEPS)
    return {
        "mlp": (mlp, draw.random((32 * STEPS, 64), np.float32), labels),
        "cnn": (cnn, draw.random((32 * STEPS, 28, 28, 1), np.float32), labels),
        "transformer": (transformer, draw.integers(0, 500, (32 * STEPS, 32)), labels),
    }


def serve() -> None:
    """Train an epoch at each line that comes in, and say how long it took."""
    if os.environ["KERAS_BACKEND"] == "hybridflow":
        import hybridflow.keras_backend  # noqa: F401
    import keras

    built = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in built:
            make, x, y = models()[name]
            model = make()
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
            built[name] = model, x, y
        model, x, y = built[name]
        begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        model.fit(x, y, batch_size=32, epochs=1, verbose=0)
        clock, cpu = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
        print(f"{clock} {cpu}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", nargs="+", default=["hybridflow", "jax", "torch"])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=100.0)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    processes = {
        backend: subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "KERAS_BACKEND": backend},
        )
        for backend in options.backends
    }

    def epoch(backend: str, name: str) -> tuple[float, float]:
        process = processes[backend]
        assert process.stdin and process.stdout
        try:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SystemExit(f"the process of the backend {backend} ended with {process.wait()} before {name} was done")
        clock, cpu = answer.split()
        return float(clock), float(cpu)

    print(f"{'model':<12} {'backend':<11} {'first epoch':>11} {'ms a step':>10} {'CPU ms a step':>13}")
    for name in options.models:
        if time.monotonic() > end:
            break
        first = {backend: epoch(backend, name) for backend in options.backends}
        epochs: dict[str, list] = {backend: [] for backend in options.backends}
        for number in range(options.rounds):
            if number and time.monotonic() > end:
                break
            for backend, taken in epochs.items():
                taken.append(epoch(backend, name))
        for backend, taken in epochs.items():
            clock, cpu = (statistics.median(part) * 1000 / STEPS for part in zip(*taken))
            print(f"{name:<12} {backend:<11} {first[backend][0]:>9.2f} s {clock:>10.2f} {cpu:>13.2f}", flush=True)
    for process in processes.values():
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
