"""What training costs: a step of a small network, an update of many variables, and what ``fit`` adds to a step.

    python benchmarks/training.py [--json] [--rounds N]

Sides take turns in one process, on one thread: ours, and PyTorch's written out (``fused`` optimizers).  Figures are
microseconds: medians of the rounds, and how far the middle half of ours spreads.  A peer that is not installed is left
out (``pip install '.[peers]'``).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["HF_NUM_THREADS"] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

if importlib.util.find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
else:
    torch = None

BATCH, BATCHES = 64, 50
RNG = np.random.default_rng(0)
X = RNG.standard_normal((BATCH * BATCHES, 64)).astype(np.float32)
Y = RNG.integers(0, 10, BATCH * BATCHES)
SHAPES = [(32, 32), (32,)] * 25
Run = Callable[[], Any]


def our_model(metrics: Any = ("accuracy",)) -> Any:
    model = hf.Sequential([hf.Input((64,)), hf.layers.Dense(128, "relu"), hf.layers.Dense(10)])
    loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hf.optimizers.Adam(1e-3), loss, metrics=list(metrics))
    return model


def our_step() -> Run:
    model = our_model()
    optimizer, loss_of = model.optimizer, model.loss

    @hf.function
    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    x, y = hf.asarray(X[:BATCH]), hf.asarray(Y[:BATCH])
    return lambda: step(x, y)


def their_step() -> Run:
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    x, y = torch.from_numpy(X[:BATCH]), torch.from_numpy(Y[:BATCH])

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def our_update() -> Run:
    variables = [hf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
    gradients = [hf.asarray(np.full(shape, 1e-3, np.float32)) for shape in SHAPES]
    optimizer = hf.optimizers.Adam(1e-3)
    return lambda: optimizer.apply(gradients, variables)


def their_update() -> Run:
    parameters = [torch.ones(shape, requires_grad=True) for shape in SHAPES]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 1e-3)
    return torch.optim.Adam(parameters, 1e-3, fused=True).step


def logged_step(metrics: Any = ("accuracy",)) -> Run:
    """The step that ``fit`` runs for each batch, without ``fit``: it updates the metrics as well."""
    step = our_model(metrics)._settings.train_step
    return lambda: [step(X[i : i + BATCH], Y[i : i + BATCH], None) for i in range(0, len(X), BATCH)]


def fitted(metrics: Any = ("accuracy",), callbacks: Any = None) -> Run:
    model = our_model(metrics)
    return lambda: model.fit(X, Y, batch_size=BATCH, verbose=0, callbacks=callbacks)


def fitted_from(data: hf.data.Dataset) -> Run:
    model = our_model()
    return lambda: model.fit(data, verbose=0)


class Watching(hf.callbacks.Callback):
    """Looks at the loss of each batch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert logs is not None and logs["loss"] == logs["loss"]


def rows() -> hf.data.Dataset:
    return hf.data.Dataset.from_tensor_slices((X, Y))


# Name: what is timed, how often it is in one run, and the peer's.
CASES: dict[str, tuple[Callable[[], Run], int, Callable[[], Run] | None]] = {
    "step of 64-128-10, Adam": (our_step, 1, their_step),
    "Adam on 50 small variables": (our_update, 1, their_update),
    "step with metrics, arrays given": (logged_step, BATCHES, None),
    "fit, a batch": (fitted, BATCHES, None),
    "step without metrics": (lambda: logged_step(()), BATCHES, None),
    "fit without metrics": (lambda: fitted(()), BATCHES, None),
    "fit, a callback reads the loss": (lambda: fitted(callbacks=[Watching()]), BATCHES, None),
    "fit of a Dataset": (lambda: fitted_from(rows().batch(BATCH)), BATCHES, None),
    "fit of a shuffled Dataset": (lambda: fitted_from(rows().shuffle(500).batch(BATCH).prefetch(2)), BATCHES, None),
}


def microseconds(run: Run, times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - started) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the medians in microseconds as JSON")
    parser.add_argument("--rounds", type=int, default=15, help="how often the sides take turns (15)")
    options = parser.parse_args()
    sides: dict[str, tuple[Run, int]] = {}
    for name, (ours, each, theirs) in CASES.items():
        sides[name] = ours(), each
        if theirs is not None and torch is not None:
            sides[f"{name}, torch"] = theirs(), each
    for run, _ in sides.values():
        for _ in range(5):
            run()
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, (run, each) in sides.items():
            found[name].append(microseconds(run, max(1, 100 // each)) / each)
    medians = {name: statistics.median(times) for name, times in found.items()}
    if options.json:
        print(json.dumps(medians))
        return
    for name, (_, _, theirs) in CASES.items():
        low, _, high = statistics.quantiles(found[name], n=4)
        line = f"{name:34} {medians[name]:8.1f} µs   (± {(high - low) / 2 / medians[name]:.0%})"
        if theirs is not None and torch is not None:
            peer = medians[f"{name}, torch"]
            line += f"   torch {peer:8.1f}   torch's time / ours {peer / medians[name]:.2f}"
        print(line)
    for name in CASES:
        if name.startswith("fit"):
            alone = "step without metrics" if name == "fit without metrics" else "step with metrics, arrays given"
            print(f"{name} adds to its step: {medians[name] - medians[alone]:.1f} µs")


if __name__ == "__main__":
    main()
