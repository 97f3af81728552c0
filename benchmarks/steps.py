"""What a step of training costs: a small GPT and a network for digits, beside PyTorch and JAX.

    python benchmarks/steps.py [--threads N] [--rounds N] [--json]

The GPT is that of ``examples/character_gpt.py``, with AdamW and clipped gradients; the other is 64-128-10 with Adam.
Sides take turns in one process.  Figures are milliseconds: medians of the rounds, and how far the middle half of ours
spreads.  A peer that is not installed is left out (``pip install '.[peers]'``).
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
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "examples")]

from benchmarks.suite.measuring import environment  # noqa: E402

Run = Callable[[], Any]
CHARACTERS = 96
GPTS = {"GPT, B 16 T 64 C 128 H 4": (16, 64, 128, 4), "GPT, B 8 T 128 C 256 H 8": (8, 128, 256, 8)}


def tokens(batch: int, steps: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, CHARACTERS, (batch, steps + 1))


def digits() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((64, 64)).astype(np.float32), random.integers(0, 10, 64)


# hybridflow


def our_gpt(batch: int, steps: int, width: int, heads: int) -> Run:
    import character_gpt

    import hybridflow as hf

    model = character_gpt.GPT(character_gpt.Sizes(CHARACTERS, steps, width, heads))
    optimizer = hf.optimizers.AdamW(1e-3, weight_decay=0.01, global_clipnorm=1.0)

    @hf.function
    def step(pieces: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.losses.softmax_cross_entropy(pieces[:, 1:], model(pieces[:, :-1]))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    pieces = hf.asarray(tokens(batch, steps))
    model(pieces[:, :-1])
    return lambda: step(pieces).item()


def our_digits() -> Run:
    import hybridflow as hf

    model = hf.Sequential([hf.Input((64,)), hf.layers.Dense(128, "relu"), hf.layers.Dense(10)])
    optimizer = hf.optimizers.Adam(1e-3)

    @hf.function
    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.losses.softmax_cross_entropy(y, model(x))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    x, y = (hf.asarray(part) for part in digits())
    return lambda: step(x, y).item()


# PyTorch


def torch_gpt(batch: int, steps: int, width: int, heads: int) -> Run:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.to_heads, self.from_heads = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            parts = self.to_heads(self.norm_1(x)).view(batch, steps, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.from_heads(seen.transpose(1, 2).reshape(batch, steps, width))
            return x + self.dense(self.norm_2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.characters, self.places = nn.Embedding(CHARACTERS, width), nn.Embedding(steps, width)
            self.rest = nn.Sequential(Block(), Block(), nn.LayerNorm(width), nn.Linear(width, CHARACTERS))

        def forward(self, x: Any) -> Any:
            return self.rest(self.characters(x) + self.places(torch.arange(steps)))

    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01, fused=True)
    pieces = torch.from_numpy(tokens(batch, steps))

    def step() -> float:
        optimizer.zero_grad()
        logits = model(pieces[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, CHARACTERS), pieces[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def torch_digits() -> Run:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    x, y = (torch.from_numpy(part) for part in digits())

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


# JAX


def jax_step(loss_of: Callable[..., Any], weights: Any, data: Any, clip: float | None, decay: float) -> Run:
    """Adam with its state donated, as a compiled step has it that updates in place."""
    import jax
    import jax.numpy as jnp

    def step(weights: Any, means: Any, squares: Any, count: Any, data: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, *data)
        if clip is not None:
            norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
            gradients = jax.tree.map(lambda g: g * jnp.minimum(1, clip / norm), gradients)
        count = count + 1
        means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        weights = jax.tree.map(
            lambda w, m, s: w * (1 - 1e-3 * decay) - rate * m / (jnp.sqrt(s) + 1e-7), weights, means, squares
        )
        return loss, (weights, means, squares, count)

    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    weights = jax.tree.map(jnp.asarray, weights)
    state = [weights, jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.float32(0)]
    data = tuple(jnp.asarray(part) for part in data)

    def run() -> float:
        loss, state[:] = compiled(*state, data)
        return float(loss)

    return run


def cross_entropy(logits: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1))


def jax_gpt(batch: int, steps: int, width: int, heads: int) -> Run:
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)

    def dense(inputs: int, outputs: int) -> list[np.ndarray]:
        kernel = random.standard_normal((inputs, outputs)).astype(np.float32) / inputs**0.5
        return [kernel, np.zeros(outputs, np.float32)]

    def scaled() -> list[np.ndarray]:
        return [np.ones(width, np.float32), np.zeros(width, np.float32)]

    def block() -> list[Any]:
        wide = dense(width, 4 * width), dense(4 * width, width)
        return [scaled(), dense(width, 3 * width)[0], dense(width, width), scaled(), *wide]

    tables = [random.standard_normal((n, width)).astype(np.float32) * 0.05 for n in (CHARACTERS, steps)]
    weights = [*tables, [block(), block()], scaled(), dense(width, CHARACTERS)]

    def norm(x: Any, parts: Any) -> Any:
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-3) * parts[0] + parts[1]

    def loss_of(weights: Any, pieces: Any) -> Any:
        characters, places, blocks, last, to_logits = weights
        x = characters[pieces[:, :-1]] + places
        for norm_1, to_heads, from_heads, norm_2, wide, narrow in blocks:
            parts = (norm(x, norm_1) @ to_heads).reshape(batch, steps, 3, heads, width // heads)
            seen = jax.nn.dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True)
            x = x + seen.reshape(batch, steps, width) @ from_heads[0] + from_heads[1]
            hidden = jax.nn.gelu(norm(x, norm_2) @ wide[0] + wide[1], approximate=False)
            x = x + hidden @ narrow[0] + narrow[1]
        return cross_entropy(norm(x, last) @ to_logits[0] + to_logits[1], pieces[:, 1:])

    return jax_step(loss_of, weights, (tokens(batch, steps),), 1.0, 0.01)


def jax_digits() -> Run:
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    weights = [
        random.standard_normal(shape).astype(np.float32) * 0.1 for shape in ((64, 128), (128,), (128, 10), (10,))
    ]

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = weights
        return cross_entropy(jnp.maximum(x @ w1 + b1, 0) @ w2 + b2, y)

    return jax_step(loss_of, weights, digits(), None, 0.0)


def milliseconds(run: Run, times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - started) / times * 1e3


def measured(sides: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round, by side.  All learn: what cannot be is said before anything is timed."""
    for side, run in sides.items():
        losses = [run() for _ in range(8)]
        assert losses[-1] < losses[0] and np.isfinite(losses).all(), f"{side} does not learn: {losses}"
    times = max(1, int(20 / milliseconds(next(iter(sides.values())), 3)))
    found: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, run in sides.items():
            found[side].append(milliseconds(run, times))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads of each side (1)")
    parser.add_argument("--rounds", type=int, default=15, help="how often the sides take turns (15)")
    parser.add_argument("--json", action="store_true", help="print the medians in milliseconds as JSON")
    options = parser.parse_args()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    os.environ.update(environment(options.threads))
    is_there = {side: importlib.util.find_spec(side) is not None for side in ("torch", "jax")}
    if is_there["torch"]:
        import torch

        torch.set_num_threads(options.threads)
    gpts = {"hybridflow": our_gpt, "torch": torch_gpt, "jax": jax_gpt}
    nets = {"hybridflow": our_digits, "torch": torch_digits, "jax": jax_digits}
    sides = [side for side in gpts if is_there.get(side, True)]
    cases = {name: {side: gpts[side](*sizes) for side in sides} for name, sizes in GPTS.items()}
    cases["digits, 64-128-10, B 64"] = {side: nets[side]() for side in sides}
    medians: dict[str, dict[str, float]] = {}
    for name, runs in cases.items():
        found = measured(runs, options.rounds)
        medians[name] = {side: statistics.median(times) for side, times in found.items()}
        if not options.json:
            low, _, high = statistics.quantiles(found["hybridflow"], n=4)
            ours = medians[name]["hybridflow"]
            line = f"{name:26} {ours:8.3f} ms (± {(high - low) / 2 / ours:.0%})"
            line += "".join(f"   {s} {t:8.3f}, ours / it {ours / t:.2f}" for s, t in medians[name].items() if t != ours)
            print(line, flush=True)
    if options.json:
        print(json.dumps(medians))


if __name__ == "__main__":
    main()
