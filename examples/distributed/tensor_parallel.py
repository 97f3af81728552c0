"""A two-layer network whose weights are cut over a mesh: the columns of one layer, the rows of the next.

    hybridflow run -n 1 examples/distributed/tensor_parallel.py
    hybridflow run -n 2 examples/distributed/tensor_parallel.py

Each replica along "model" has a part of the hidden layer, and one all-reduce puts the parts together (Megatron's form).
Both commands print the same digest.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import numpy as np

import hybridflow as hf

P = hf.distribute.P
MESH = hf.distribute.make_mesh({"model": 4})


def network(x: Any, first: Any, second: Any) -> Any:
    """What a replica computes with its columns of the first weights, and its rows of the second."""
    hidden = hf.maximum(x @ first, 0.0)
    return hf.distribute.all_reduce(hidden @ second, "sum", axis="model")


def loss_and_gradients(x: Any, y: Any, first: Any, second: Any) -> Any:
    """The loss, and the gradients of this replica's part of the weights."""
    with hf.GradientTape() as tape:
        tape.watch(first)
        tape.watch(second)
        # A gradient is that of the sum over replicas, of which each has the whole loss.
        loss = hf.mean((network(x, first, second) - y) ** 2) / hf.distribute.axis_size("model")
    by_first, by_second = tape.gradient(loss, [first, second])
    return hf.distribute.all_reduce(loss, "sum", axis="model"), by_first, by_second


def main() -> None:
    """Train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 16)).astype(np.float32)
    y = np.sin(x[:, :1] + x[:, 1:2]).astype(np.float32)
    first = hf.Variable(rng.normal(size=(16, 64)).astype(np.float32) / 4)
    second = hf.Variable(rng.normal(size=(64, 1)).astype(np.float32) / 8)
    optimizer = hf.optimizers.Adam(0.01)

    sharded = hf.distribute.shard_map(
        loss_and_gradients,
        mesh=MESH,
        in_specs=(P(), P(), P(None, "model"), P("model")),
        out_specs=(P(), P(None, "model"), P("model")),
    )

    @hf.function
    def step(x: Any, y: Any) -> Any:
        loss, *gradients = sharded(x, y, first, second)
        optimizer.apply_gradients(zip(gradients, (first, second)))
        return loss

    for _ in range(options.steps):
        loss = step(x, y)
    digest = hashlib.sha256(first.numpy().tobytes() + second.numpy().tobytes()).hexdigest()[:16]
    print(f"loss {loss.item():.3f}, weights {digest}")


if __name__ == "__main__":
    main()
