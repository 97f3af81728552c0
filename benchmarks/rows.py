"""Programs that work along rows against NumPy, JAX and PyTorch: ordering, choosing, adding up by index, norms, losses
and attention with their gradients.  All sides in one process, in turns.

    python benchmarks/rows.py [--json] [--threads N] [WORD ...]

Only programs whose names have one of the words are measured, if any are given.
"""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peers

OPTIONS = peers.parsed(__doc__)

import numpy as np  # noqa: E402  (reads how many threads there should be)

import hybridflow as hf  # noqa: E402


def _gradient(loss: Any) -> Any:
    """The loss and its gradient with respect to all arguments that are not integers."""

    def run(*given: Any) -> Any:
        sources = [x for x in given if x.dtype.kind == "f"]
        with hf.GradientTape() as tape:
            for x in sources:
                tape.watch(x)
            value = loss(*given)
        return [value, *tape.gradient(value, sources)]

    return run


def ours() -> peers.Programs:
    def batch_norm(x: Any, scale: Any, offset: Any, g: Any) -> Any:
        mean, variance = hf.nn.moments(x, 0)
        return hf.sum(((x - mean) / hf.sqrt(variance + 1e-5) * scale + offset) * g)

    def bodies(x: Any) -> Any:
        d = x[:, None] - x[None]
        r = hf.sum(d * d, axis=-1) + 0.01
        return hf.sum(d / (r * hf.sqrt(r))[..., None], axis=1)

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ hf.permute_dims(k, (0, 1, 3, 2)) * (1 / np.sqrt(q.shape[-1]))
        return hf.nn.softmax(scores) @ v

    def causal(q: Any, k: Any, v: Any) -> Any:
        scores = q @ hf.permute_dims(k, (0, 1, 3, 2)) * (1 / np.sqrt(q.shape[-1]))
        n = q.shape[2]
        there = hf.arange(n)[:, None] >= hf.arange(n)[None]
        return hf.nn.softmax(hf.where(there, scores, -1e9)) @ v

    def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
        b, t, c = x.shape
        h = hf.nn.layer_norm(x)
        qkv = hf.permute_dims(hf.reshape(h @ wqkv, (b, t, 3, 4, c // 4)), (2, 0, 3, 1, 4))
        y = hf.reshape(hf.permute_dims(causal(qkv[0], qkv[1], qkv[2]), (0, 2, 1, 3)), (b, t, c))
        x = x + y @ wo
        x = x + hf.nn.gelu(hf.nn.layer_norm(x) @ w1, approximate=True) @ w2
        return hf.mean(x * x)

    def cross_entropy(x: Any, labels: Any) -> Any:
        shares = hf.nn.log_softmax(x)
        return -hf.mean(hf.take_along_axis(shares, labels[:, None], axis=1))

    return {
        "sort rows 1000x1000": lambda x: hf.sort(x, axis=1),
        "sort rows 16384x64": lambda x: hf.sort(x, axis=1),
        "sort rows int32": lambda x: hf.sort(x, axis=1),
        "sort a vector": lambda x: hf.sort(x),
        "argsort rows": lambda x: hf.argsort(x, axis=1),
        "argsort a vector": lambda x: hf.argsort(x),
        "top 8 of 4096": lambda x: list(hf.top_k(x, 8)),
        "top 100 of 32000": lambda x: list(hf.top_k(x, 100)),
        "argmax of rows": lambda x: hf.argmax(x, axis=1),
        "argmax of 32000": lambda x: hf.argmax(x, axis=1),
        "argmax of columns": lambda x: hf.argmax(x, axis=0),
        "histogram": lambda x: hf.scatter_add(hf.zeros(256, hf.int64), x, hf.ones_like(x)),
        "embedding rows": lambda t, i: hf.take(t, i, axis=0),
        "embedding gradient": lambda t, i, g: hf.scatter_add(hf.zeros_like(t), i, g),
        "take along rows": lambda x, i: hf.take_along_axis(x, i, axis=1),
        "softmax 4096x1024": lambda x: hf.nn.softmax(x),
        "softmax gradient": _gradient(lambda x, g: hf.sum(hf.nn.softmax(x) * g)),
        "layer norm": lambda x: hf.nn.layer_norm(x),
        "layer norm gradient": _gradient(lambda x, s, o, g: hf.sum(hf.nn.layer_norm(x, s, o) * g)),
        "rms norm gradient": _gradient(lambda x, s, g: hf.sum(hf.nn.rms_norm(x, s) * g)),
        "batch norm gradient": _gradient(batch_norm),
        "mean and variance": lambda x: list(hf.nn.moments(x, 0)),
        "cross entropy 32000": cross_entropy,
        "cross entropy gradient 32000": _gradient(cross_entropy),
        "bodies 512": bodies,
        "attention": attention,
        "attention gradient": _gradient(lambda q, k, v: hf.sum(attention(q, k, v) ** 2)),
        "causal attention": causal,
        "causal attention gradient": _gradient(lambda q, k, v: hf.sum(causal(q, k, v) ** 2)),
        "transformer gradient": _gradient(block),
    }


def numpys() -> peers.Programs:
    def bodies(x: Any) -> Any:
        d = x[:, None] - x[None]
        r = (d * d).sum(-1) + np.float32(0.01)
        return (d / (r * np.sqrt(r))[..., None]).sum(1)

    return {
        "sort rows 1000x1000": lambda x: np.sort(x, axis=1),
        "sort rows 16384x64": lambda x: np.sort(x, axis=1),
        "sort rows int32": lambda x: np.sort(x, axis=1),
        "sort a vector": lambda x: np.sort(x),
        "argsort rows": lambda x: np.argsort(x, axis=1, kind="stable"),
        "argsort a vector": lambda x: np.argsort(x, kind="stable"),
        "argmax of rows": lambda x: np.argmax(x, axis=1),
        "argmax of 32000": lambda x: np.argmax(x, axis=1),
        "argmax of columns": lambda x: np.argmax(x, axis=0),
        "histogram": lambda x: np.bincount(x, minlength=256),
        "embedding rows": lambda t, i: np.take(t, i, axis=0),
        "take along rows": lambda x, i: np.take_along_axis(x, i, axis=1),
        "bodies 512": bodies,
    }


def jaxes() -> peers.Programs:
    import jax
    import jax.numpy as jnp

    def gradient(loss: Any) -> Any:
        def run(*given: Any) -> Any:
            places = tuple(k for k, x in enumerate(given) if x.dtype.kind == "f")
            value, found = jax.value_and_grad(loss, places)(*given)
            return [value, *found]

        return run

    def layer_norm(x: Any, s: Any = 1.0, o: Any = 0.0) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * s + o

    def rms_norm(x: Any, s: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s

    def batch_norm(x: Any, s: Any, o: Any, g: Any) -> Any:
        mean, variance = x.mean(0), x.var(0)
        return jnp.sum(((x - mean) / jnp.sqrt(variance + 1e-5) * s + o) * g)

    def cross_entropy(x: Any, labels: Any) -> Any:
        shares = jax.nn.log_softmax(x)
        return -jnp.mean(jnp.take_along_axis(shares, labels[:, None], axis=1))

    def bodies(x: Any) -> Any:
        d = x[:, None] - x[None]
        r = (d * d).sum(-1) + 0.01
        return (d / (r * jnp.sqrt(r))[..., None]).sum(1)

    def attention(q: Any, k: Any, v: Any, masked: bool = False) -> Any:
        scores = jnp.einsum("bhtd,bhsd->bhts", q, k) * np.float32(1 / np.sqrt(q.shape[-1]))
        if masked:
            n = q.shape[2]
            scores = jnp.where(jnp.arange(n)[:, None] >= jnp.arange(n)[None], scores, -1e9)
        return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores), v)

    def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (layer_norm(x) @ wqkv).reshape(b, t, 3, 4, c // 4).transpose(2, 0, 3, 1, 4)
        x = x + attention(q, k, v, True).transpose(0, 2, 1, 3).reshape(b, t, c) @ wo
        x = x + jax.nn.gelu(layer_norm(x) @ w1, approximate=True) @ w2
        return jnp.mean(x * x)

    return {
        "sort rows 1000x1000": lambda x: jnp.sort(x, axis=1),
        "argsort rows": lambda x: jnp.argsort(x, axis=1),
        "top 8 of 4096": lambda x: list(jax.lax.top_k(x, 8)),
        "argmax of rows": lambda x: jnp.argmax(x, axis=1),
        "argmax of columns": lambda x: jnp.argmax(x, axis=0),
        "histogram": lambda x: jnp.bincount(x, length=256),
        "embedding rows": lambda t, i: jnp.take(t, i, axis=0, mode="clip"),
        "embedding gradient": lambda t, i, g: jnp.zeros_like(t).at[i].add(g),
        "take along rows": lambda x, i: jnp.take_along_axis(x, i, axis=1),
        "softmax 4096x1024": lambda x: jax.nn.softmax(x),
        "softmax gradient": gradient(lambda x, g: jnp.sum(jax.nn.softmax(x) * g)),
        "layer norm": layer_norm,
        "layer norm gradient": gradient(lambda x, s, o, g: jnp.sum(layer_norm(x, s, o) * g)),
        "rms norm gradient": gradient(lambda x, s, g: jnp.sum(rms_norm(x, s) * g)),
        "batch norm gradient": gradient(batch_norm),
        "mean and variance": lambda x: [x.mean(0), x.var(0)],
        "cross entropy 32000": cross_entropy,
        "cross entropy gradient 32000": gradient(cross_entropy),
        "bodies 512": bodies,
        "attention": attention,
        "attention gradient": gradient(lambda q, k, v: jnp.sum(attention(q, k, v) ** 2)),
        "causal attention": lambda q, k, v: attention(q, k, v, True),
        "causal attention gradient": gradient(lambda q, k, v: jnp.sum(attention(q, k, v, True) ** 2)),
        "transformer gradient": gradient(block),
    }


def torches() -> peers.Programs:
    import torch
    from torch.nn import functional as F

    def gradient(loss: Any) -> Any:
        def run(*given: Any) -> Any:
            held = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
            value = loss(*held)
            found = torch.autograd.grad(value, [x for x in held if x.requires_grad])
            return [value.detach(), *found]

        return run

    def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (F.layer_norm(x, (c,)) @ wqkv).reshape(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(b, t, c) @ wo
        x = x + F.gelu(F.layer_norm(x, (c,)) @ w1, approximate="tanh") @ w2
        return (x * x).mean()

    attention = F.scaled_dot_product_attention
    return {
        "sort rows 1000x1000": lambda x: torch.sort(x, 1)[0],
        "sort rows 16384x64": lambda x: torch.sort(x, 1)[0],
        "sort rows int32": lambda x: torch.sort(x, 1)[0],
        "sort a vector": lambda x: torch.sort(x)[0],
        "argsort rows": lambda x: torch.argsort(x, dim=1, stable=True),
        "argsort a vector": lambda x: torch.argsort(x, stable=True),
        "top 8 of 4096": lambda x: list(torch.topk(x, 8)),
        "top 100 of 32000": lambda x: list(torch.topk(x, 100)),
        "argmax of rows": lambda x: torch.argmax(x, 1),
        "argmax of 32000": lambda x: torch.argmax(x, 1),
        "argmax of columns": lambda x: torch.argmax(x, 0),
        "histogram": lambda x: torch.bincount(x, minlength=256),
        "embedding rows": lambda t, i: torch.index_select(t, 0, i),
        "embedding gradient": lambda t, i, g: torch.zeros_like(t).index_add_(0, i, g),
        "take along rows": lambda x, i: torch.gather(x, 1, i),
        "softmax 4096x1024": lambda x: torch.softmax(x, -1),
        "softmax gradient": gradient(lambda x, g: (torch.softmax(x, -1) * g).sum()),
        "layer norm": lambda x: F.layer_norm(x, x.shape[1:]),
        "layer norm gradient": gradient(lambda x, s, o, g: (F.layer_norm(x, x.shape[1:], s, o) * g).sum()),
        "rms norm gradient": gradient(lambda x, s, g: (F.rms_norm(x, x.shape[1:], s, 1e-6) * g).sum()),
        "batch norm gradient": gradient(
            lambda x, s, o, g: (F.batch_norm(x, None, None, s, o, training=True) * g).sum()
        ),
        "mean and variance": lambda x: list(torch.var_mean(x, 0, correction=0))[::-1],
        "cross entropy 32000": lambda x, labels: F.cross_entropy(x, labels),
        "cross entropy gradient 32000": gradient(lambda x, labels: F.cross_entropy(x, labels)),
        "attention": attention,
        "attention gradient": gradient(lambda q, k, v: (attention(q, k, v) ** 2).sum()),
        "causal attention": lambda q, k, v: attention(q, k, v, is_causal=True),
        "causal attention gradient": gradient(lambda q, k, v: (attention(q, k, v, is_causal=True) ** 2).sum()),
        "transformer gradient": gradient(block),
    }


def arguments() -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    logits = normal(256, 32_000)
    rows, vector, wide = normal(1000, 1000), normal(1_000_000), normal(1000, 4096)
    heads = [normal(4, 4, 512, 64) for _ in range(3)]
    labels = rng.integers(0, 32_000, 256)
    c = 256
    norm = [normal(4096, 1024), normal(1024), normal(1024), normal(4096, 1024)]
    return {
        "sort rows 1000x1000": [rows],
        "sort rows 16384x64": [normal(16384, 64)],
        "sort rows int32": [rng.integers(-(2**31), 2**31, (1000, 1000)).astype(np.int32)],
        "sort a vector": [vector],
        "argsort rows": [rows],
        "argsort a vector": [vector],
        "top 8 of 4096": [wide],
        "top 100 of 32000": [logits],
        "argmax of rows": [rows],
        "argmax of 32000": [logits],
        "argmax of columns": [rows],
        "histogram": [rng.integers(0, 256, 1_000_000)],
        "embedding rows": [normal(200_000, 64), rng.integers(0, 200_000, 20_000)],
        "embedding gradient": [normal(50_000, 64), rng.integers(0, 50_000, 20_000), normal(20_000, 64)],
        "take along rows": [rows, rng.integers(0, 1000, (1000, 1000))],
        "softmax 4096x1024": norm[:1],
        "softmax gradient": [norm[0], norm[3]],
        "layer norm": norm[:1],
        "layer norm gradient": norm,
        "rms norm gradient": [norm[0], norm[1], norm[3]],
        "batch norm gradient": [normal(32 * 28 * 28, 64), normal(64), normal(64), normal(32 * 28 * 28, 64)],
        "mean and variance": [normal(32 * 28 * 28, 64)],
        "cross entropy 32000": [logits, labels],
        "cross entropy gradient 32000": [logits, labels],
        "bodies 512": [normal(512, 3)],
        "attention": heads,
        "attention gradient": heads,
        "causal attention": heads,
        "causal attention gradient": heads,
        "transformer gradient": [
            normal(4, 128, c),
            *(normal(*shape) / 16 for shape in ((c, 3 * c), (c, c), (c, 4 * c), (4 * c, c))),
        ],
    }


if __name__ == "__main__":
    present = peers.sides(OPTIONS.threads, ours, numpys, jaxes, torches)
    peers.compare(OPTIONS, present, arguments(), tolerance=2e-3)
