"""What a word2vec step costs whose tables are large, beside PyTorch with sparse gradients.

    python benchmarks/lookups.py [--json] [--rounds N]

Two tables of 200 000 x 128 floats, 1024 pairs of words and 64 words drawn for all pairs; SGD.  Both take turns in one
process, on one thread.  Figures are milliseconds a step: medians of the rounds, and how far the middle half of ours
spreads.
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


def our_step() -> Callable[[], Any]:
    tables, indices = numbers()
    words, contexts = (hf.Variable(table) for table in tables)
    optimizer = hf.optimizers.SGD(RATE)

    @hf.function
    def step(word: Any, context: Any, drawn: Any) -> Any:
        with hf.GradientTape() as tape:
            vectors = hf.take(words, word, axis=0)
            near = hf.sum(vectors * hf.take(contexts, context, axis=0), -1)
            far = vectors @ hf.take(contexts, drawn, axis=0).T
            loss = hf.mean(hf.nn.softplus(-near)) + hf.mean(hf.sum(hf.nn.softplus(far), -1))
        optimizer.apply(tape.gradient(loss, [words, contexts]), [words, contexts])
        return loss

    given = [hf.asarray(x) for x in indices]
    return lambda: step(*given).item()


def torch_step() -> Callable[[], Any]:
    tables, indices = numbers()
    words, contexts = (torch.nn.Embedding(ROWS, COLUMNS, sparse=True, _weight=torch.tensor(t)) for t in tables)
    optimizer = torch.optim.SGD([*words.parameters(), *contexts.parameters()], lr=RATE)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    steps = {"ours": our_step(), **({} if torch is None else {"torch": torch_step()})}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(WARM + options.rounds):
        losses = set()
        for name, step in steps.items():
            start = time.perf_counter()
            losses.add(round(step(), 3))
            if k >= WARM:
                times[name].append((time.perf_counter() - start) * 1e3)
        assert len(losses) == 1, losses
    result = {name: statistics.median(values) for name, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    result["spread"] = (high - low) / 2
    print(json.dumps(result) if options.json else "  ".join(f"{name} {value:.2f} ms" for name, value in result.items()))


if __name__ == "__main__":
    main()
