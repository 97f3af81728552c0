"""Learn the groups of a graph from a few labels: two graph convolutions with a sparse matrix of neighbours.

    python examples/graph_convolution.py [STEPS]

Nodes of one group are linked more often than others.  Every node has noise for features; eight nodes of each group
have a label.  A layer mixes the features of neighbours, one product with a CSR matrix.
"""

from __future__ import annotations

import sys

import numpy as np

import hybridflow as hf


def graph(groups: int, size: int, rng: np.random.Generator) -> tuple[hf.sparse.CSR, np.ndarray]:
    """The normalised matrix of neighbours, and the group of each node."""
    nodes = groups * size
    group = np.repeat(np.arange(groups), size)
    inside, across = 12 / size, 2 / nodes
    linked = rng.random((nodes, nodes)) < np.where(group[:, None] == group, inside, across)
    linked |= linked.T | np.eye(nodes, dtype=bool)
    degree = linked.sum(1).astype(np.float32)
    rows, columns = np.nonzero(linked)
    weights = 1 / np.sqrt(degree[rows] * degree[columns])
    matrix = hf.sparse.COO(np.stack([rows, columns], axis=1), weights, (nodes, nodes))
    return matrix.to_csr(), group


def train(steps: int = 60, groups: int = 4, size: int = 100) -> float:
    """The share of nodes without a label whose group is found."""
    rng = np.random.default_rng(0)
    matrix, group = graph(groups, size, rng)
    features = hf.asarray(rng.normal(size=(len(group), 32)).astype(np.float32))
    known = np.concatenate([rng.choice(np.flatnonzero(group == k), 8, replace=False) for k in range(groups)])
    first = hf.Variable((rng.normal(size=(32, 32)) * 0.2).astype(np.float32))
    second = hf.Variable((rng.normal(size=(32, groups)) * 0.2).astype(np.float32))
    optimizer = hf.optimizers.Adam(0.01)

    def logits(matrix: hf.sparse.CSR) -> hf.Tensor:
        hidden = hf.nn.relu(matrix @ (features @ first))
        return matrix @ (hidden @ second)

    @hf.function
    def step(matrix: hf.sparse.CSR) -> hf.Tensor:
        with hf.GradientTape() as tape:
            loss = hf.losses.softmax_cross_entropy(hf.nn.one_hot(group[known], groups), logits(matrix)[known])
        optimizer.apply(tape.gradient(loss, [first, second]), [first, second])
        return loss

    for k in range(steps):
        loss = step(matrix)
        if k % 20 == 0:
            print(f"step {k}: loss {loss.item():.3f}")
    found = hf.argmax(logits(matrix), axis=-1).numpy()
    others = np.setdiff1d(np.arange(len(group)), known)
    return float((found == group)[others].mean())


if __name__ == "__main__":
    print(f"{train(int(sys.argv[1]) if len(sys.argv) > 1 else 60):.1%} of the other nodes are right")
