"""What a word2vec step costs whose tables are large, beside PyTorch with sparse gradients.

    python benchmarks/lookups.py [--json] [--rounds N] [WORDS]

Two tables of 200 000 x 128 floats, 1024 pairs of words and 64 words drawn for all pairs.  SGD, Adagrad and the Adam
that leaves alone what was not looked up, each compiled as a whole, eager, and with a compiled loss under an eager tape.
All take turns in one process, on one thread.  Figures are milliseconds a step: medians of the rounds, and how far the
middle half of ours spreads.
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
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

if importlib.util.find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
else:
    torch = None

ROWS, COLUMNS, PAIRS, DRAWN = 200_000, 128, 1024, 64
RATE = 0.1
WARM = 5


def numbers() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The tables, and the indices of words, contexts and drawn words."""
    rng = np.random.default_rng(0)
    tables = [(rng.normal(size=(ROWS, COLUMNS)) * 0.1).astype(np.float32) for _ in range(2)]
    return tables, [rng.integers(0, ROWS, count) for count in (PAIRS, PAIRS, DRAWN)]


def our_step(kind: str, mode: str) -> Callable[[], Any]:
    tables, indices = numbers()
    words, contexts = (hf.Variable(table) for table in tables)
    optimizer = OURS[kind]()

    def loss_of(word: Any, context: Any, drawn: Any) -> Any:
        vectors = hf.take(words, word, axis=0)
        near = hf.sum(vectors * hf.take(contexts, context, axis=0), -1)
        far = vectors @ hf.take(contexts, drawn, axis=0).T
        return hf.mean(hf.nn.softplus(-near)) + hf.mean(hf.sum(hf.nn.softplus(far), -1))

    if mode == "compiled loss":
        loss_of = hf.function(loss_of)

    def step(word: Any, context: Any, drawn: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = loss_of(word, context, drawn)
        optimizer.apply(tape.gradient(loss, [words, contexts]), [words, contexts])
        return loss

    if mode == "compiled":
        step = hf.function(step)
    given = [hf.asarray(x) for x in indices]
    return lambda: step(*given).item()


def torch_step(kind: str) -> Callable[[], Any]:
    tables, indices = numbers()
    words, contexts = (torch.nn.Embedding(ROWS, COLUMNS, sparse=True, _weight=torch.tensor(t)) for t in tables)
    optimizer = THEIRS[kind]([*words.parameters(), *contexts.parameters()])
    word, context, drawn = (torch.tensor(x) for x in indices)
    softplus = torch.nn.functional.softplus

    def step() -> Any:
        optimizer.zero_grad()
        vectors = words(word)
        near, far = (vectors * contexts(context)).sum(-1), vectors @ contexts(drawn).T
        loss = softplus(-near).mean() + softplus(far).sum(-1).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


MODES = "compiled", "eager", "compiled loss"
OURS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: hf.optimizers.SGD(RATE),
    "Adagrad": lambda: hf.optimizers.Adagrad(RATE, initial_accumulator_value=0.1, epsilon=1e-10),
    "Adam": lambda: hf.optimizers.LazyAdam(0.001, epsilon=1e-8),
}
THEIRS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda weights: torch.optim.SGD(weights, lr=RATE),
    "Adagrad": lambda weights: torch.optim.Adagrad(weights, lr=RATE, initial_accumulator_value=0.1),
    "Adam": lambda weights: torch.optim.SparseAdam(weights, lr=0.001),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    for kind in OURS:
        if not options.words or any(word in kind for word in options.words):
            measure(kind, options.rounds, options.json)


def measure(kind: str, rounds: int, as_json: bool) -> None:
    steps = {mode: our_step(kind, mode) for mode in MODES} | ({} if torch is None else {"torch": torch_step(kind)})
    times: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(WARM + rounds):
        losses = []
        for name, step in steps.items():
            start = time.perf_counter()
            losses.append(step())
            if k >= WARM:
                times[name].append((time.perf_counter() - start) * 1e3)
        assert max(losses) - min(losses) < 2e-3 * max(losses), losses
    result = {name: statistics.median(values) for name, values in times.items()}
    spreads = {name: statistics.quantiles(values, n=4) for name, values in times.items()}
    if as_json:
        print(json.dumps({"kind": kind, **result, "spread": {n: (q[2] - q[0]) / 2 for n, q in spreads.items()}}))
    else:
        low_high = {name: f"{q[0]:.2f} to {q[2]:.2f}" for name, q in spreads.items()}
        print(kind, *(f"{name} {value:.2f} ms ({low_high[name]})" for name, value in result.items()), sep="  ")


if __name__ == "__main__":
    main()
