"""What a call of a compiled model costs above its kernels: guards, variables, the way there and back.

    python benchmarks/model_calls.py [--json] [--only WORDS] [--rounds N] [--train]

Models of hf.layers at their real depth, on inputs so small that kernels take next to nothing.  "call" is the time of
the processor for one call (the median of the rounds), "kernels" what ``f.profile`` gives for them, "above" the median
of the differences, "least" the difference of the least of each; "guards" are values that are watched, "checks" what
native code looks at while none of them changes.
``--train`` measures steps of training, with an optimizer's state, in their place.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

L = hf.layers
Made = tuple[Any, list[Any]]  # a model, and its inputs


def blocks(count: int, batch_norm: bool = True) -> Callable[[], Made]:
    def make() -> Made:
        start = x = hf.Input((8,))
        for _ in range(count):
            x = L.Dense(8)(x)
            x = L.ReLU()(L.BatchNormalization()(x) if batch_norm else x)
        return hf.Model(start, x), [hf.random.normal((2, 8))]

    return make


def sequence(count: int) -> Callable[[], Made]:
    def make() -> Made:
        layers = [layer for _ in range(count) for layer in (L.Dense(8), L.BatchNormalization(), L.ReLU())]
        return hf.Sequential(layers), [hf.random.normal((2, 8))]

    return make


def resnet50() -> Made:
    def convolved(x: Any, filters: int, size: int, strides: int = 1, relu: bool = True) -> Any:
        x = L.Conv2D(filters, size, strides=strides, padding="same", use_bias=False)(x)
        x = L.BatchNormalization()(x)
        return L.ReLU()(x) if relu else x

    def bottleneck(x: Any, filters: int, strides: int, widens: bool) -> Any:
        shortcut = convolved(x, 4 * filters, 1, strides, relu=False) if widens else x
        y = convolved(convolved(x, filters, 1, strides), filters, 3)
        return L.ReLU()(L.Add()([convolved(y, 4 * filters, 1, relu=False), shortcut]))

    start = hf.Input((32, 32, 3))
    x = L.MaxPooling2D(3, strides=2, padding="same")(convolved(start, 8, 7, 2))
    for filters, count, strides in ((2, 3, 1), (4, 4, 2), (8, 6, 2), (16, 3, 2)):
        for k in range(count):
            x = bottleneck(x, filters, strides if k == 0 else 1, k == 0)
    x = L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x))
    return hf.Model(start, x), [hf.random.normal((1, 32, 32, 3))]


def mobilenet_v2() -> Made:
    def normed(x: Any, relu: bool = True) -> Any:
        x = L.BatchNormalization()(x)
        return L.ReLU(max_value=6.0)(x) if relu else x

    def inverted(x: Any, filters: int, strides: int, expansion: int) -> Any:
        channels = x.shape[-1]
        y = normed(L.Conv2D(channels * expansion, 1, use_bias=False)(x)) if expansion > 1 else x
        y = normed(L.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)(y))
        y = normed(L.Conv2D(filters, 1, use_bias=False)(y), relu=False)
        return L.Add()([x, y]) if strides == 1 and channels == filters else y

    start = hf.Input((32, 32, 3))
    x = normed(L.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(start))
    plan = ((1, 4, 1, 1), (6, 4, 2, 2), (6, 8, 3, 2), (6, 8, 4, 2), (6, 8, 3, 1), (6, 16, 3, 2), (6, 16, 1, 1))
    for expansion, filters, count, strides in plan:
        for k in range(count):
            x = inverted(x, filters, strides if k == 0 else 1, expansion)
    x = normed(L.Conv2D(32, 1, use_bias=False)(x))
    return hf.Model(start, L.Dense(10)(L.GlobalAveragePooling2D()(x))), [hf.random.normal((1, 32, 32, 3))]


class _Embedded(L.Layer):
    """Embeddings of words and of their places."""

    def __init__(self, words: int, length: int, width: int, **options: Any) -> None:
        super().__init__(**options)
        self.words, self.places = L.Embedding(words, width), L.Embedding(length, width)

    def call(self, numbers: Any) -> Any:
        return self.words(numbers) + self.places(hf.arange(numbers.shape[1]))


def bert() -> Made:
    width = 8
    start = hf.Input((8,), dtype="int32")
    x = L.Dropout(0.1)(L.LayerNormalization()(_Embedded(100, 8, width)(start)))
    for _ in range(12):
        attended = L.Dropout(0.1)(L.MultiHeadAttention(2, width // 2)(x, x))
        x = L.LayerNormalization()(L.Add()([x, attended]))
        y = L.Dropout(0.1)(L.Dense(width)(L.Dense(4 * width, activation="gelu")(x)))
        x = L.LayerNormalization()(L.Add()([x, y]))
    return hf.Model(start, x), [hf.asarray(np.arange(16, dtype=np.int32).reshape(2, 8))]


MODELS: dict[str, Callable[[], Made]] = {
    "blocks_45": blocks(45),
    "blocks_50": blocks(50),
    "blocks_60": blocks(60),
    "blocks_150": blocks(150),
    "blocks_150_without_norm": blocks(150, batch_norm=False),
    "sequential_150": sequence(150),
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "bert_12": bert,
}


def inference(make: Callable[[], Made]) -> tuple[Any, list[Any]]:
    model, inputs = make()
    model(*inputs)  # its variables are made before
    return hf.function(lambda x: model(x, training=False)), inputs


def training(make: Callable[[], Made]) -> tuple[Any, list[Any]]:
    model, inputs = make()
    model(*inputs)
    optimizer = hf.optimizers.Adam(1e-3)

    @hf.function
    def step(x: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.mean(model(x, training=True) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, inputs


def measure(name: str, made: tuple[Any, list[Any]], rounds: int) -> dict[str, Any]:
    f, inputs = made
    start = time.process_time()
    f(*inputs)
    first = time.process_time() - start
    for _ in range(20):
        f(*inputs)
    calls, kernels = [], []
    for _ in range(rounds):  # in turn, so that what else goes on meets both
        start = time.thread_time()
        for _ in range(50):
            f(*inputs)
        calls.append((time.thread_time() - start) / 50 * 1e6)
        kernels.append(f.profile(*inputs, runs=30).total)
    explained = f.explain(*inputs)
    return {
        "model": name,
        "call": round(statistics.median(calls), 1),
        "kernels": round(statistics.median(kernels), 1),
        "above": round(statistics.median(a - b for a, b in zip(calls, kernels)), 1),
        "least": round(min(calls) - min(kernels), 1),
        "guards": explained.guards,
        "checks": explained.checks,
        "trace_ms": round(explained.trace_ms),
        "first_s": round(first, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="models whose names contain one of these words")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--train", action="store_true", help="steps of training")
    options = parser.parse_args()
    hf.config.set_num_threads(1)
    words = options.only.split()
    columns = ("call", "kernels", "above", "least", "guards", "checks", "trace_ms", "first_s")
    if not options.json:
        print("µs of a call".ljust(26), *(column.rjust(9) for column in columns))
    results = []
    for name, make in MODELS.items():
        if not words or any(word in name for word in words):
            results.append(measure(name, (training if options.train else inference)(make), options.rounds))
            if not options.json:
                print(name.ljust(26), *(str(results[-1][column]).rjust(9) for column in columns), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
