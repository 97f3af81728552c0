"""Moving, gathering and ordering data against NumPy, JAX and PyTorch, in turns, in one process.

    python benchmarks/movement.py [--threads N] [--json] [WORD ...]

All have one thread, unless told otherwise.  Only programs whose names have one of the words are measured, if any are
given.  A peer that is not installed is left
out (``pip install '.[peers]'``).  Every program is checked once: all sides must agree before any of them is timed.
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


def ours() -> peers.Programs:
    def bilinear(image: Any, y: Any, x: Any) -> Any:
        y0, x0 = hf.floor(y), hf.floor(x)
        fy, fx = y - y0, x - x0
        i, j = hf.astype(y0, hf.int32), hf.astype(x0, hf.int32)
        top = image[i, j] * (1 - fx) + image[i, j + 1] * fx
        bottom = image[i + 1, j] * (1 - fx) + image[i + 1, j + 1] * fx
        return top * (1 - fy) + bottom * fy

    def saturating(a: Any, b: Any) -> Any:
        return hf.astype(hf.minimum(hf.astype(a, hf.int16) + hf.astype(b, hf.int16), 255), hf.uint8)

    return {
        "flip uint8 images": lambda x: x[:, :, ::-1],
        "flip float32 rows": lambda x: x[:, ::-1],
        "flip a vector": lambda x: x[::-1],
        "rows by index": lambda t, i: hf.take(t, i, axis=0),
        "bilinear": bilinear,
        "images to NCHW": lambda x: hf.permute_dims(hf.astype(x, hf.float32) / 255.0, (0, 3, 1, 2)),
        "images to NHWC": lambda x: hf.permute_dims(x, (0, 2, 3, 1)),
        "pad images": lambda x: hf.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0))),
        "pad a matrix": lambda x: hf.pad(x, ((1, 1), (1, 1))),
        "roll": lambda x: hf.roll(x, 5, axis=1),
        "concat columns": lambda x, y: hf.concat([x, y], axis=1),
        "stack columns": lambda x, y: hf.stack([x, y], axis=-1),
        "tile": lambda x: hf.tile(x, (2, 3)),
        "repeat": lambda x: hf.repeat(x, 3, axis=1),
        "every second": lambda x: x[:, ::2],
        "saturating add": saturating,
        "histogram": lambda x: hf.scatter_add(hf.zeros(256, hf.int64), x, hf.ones_like(x)),
        "argmax of rows": lambda x: hf.argmax(x, axis=1),
        "sort rows": lambda x: hf.sort(x, axis=1),
        "transpose": lambda x: x.T,
    }


def numpys() -> peers.Programs:
    return {
        "flip uint8 images": lambda x: x[:, :, ::-1].copy(),
        "flip float32 rows": lambda x: x[:, ::-1].copy(),
        "flip a vector": lambda x: x[::-1].copy(),
        "rows by index": lambda t, i: np.take(t, i, axis=0),
        "images to NCHW": lambda x: np.ascontiguousarray(
            (x.astype(np.float32) / np.float32(255)).transpose(0, 3, 1, 2)
        ),
        "images to NHWC": lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)),
        "pad images": lambda x: np.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0))),
        "pad a matrix": lambda x: np.pad(x, ((1, 1), (1, 1))),
        "roll": lambda x: np.roll(x, 5, axis=1),
        "concat columns": lambda x, y: np.concatenate([x, y], axis=1),
        "stack columns": lambda x, y: np.stack([x, y], axis=-1),
        "tile": lambda x: np.tile(x, (2, 3)),
        "repeat": lambda x: np.repeat(x, 3, axis=1),
        "every second": lambda x: x[:, ::2].copy(),
        "saturating add": lambda a, b: np.minimum(a.astype(np.int16) + b, 255).astype(np.uint8),
        "histogram": lambda x: np.bincount(x, minlength=256),
        "argmax of rows": lambda x: np.argmax(x, axis=1),
        "sort rows": lambda x: np.sort(x, axis=1),
        "transpose": lambda x: x.T.copy(),
    }


def jaxes() -> peers.Programs:
    import jax.numpy as jnp

    def bilinear(image: Any, y: Any, x: Any) -> Any:
        y0, x0 = jnp.floor(y), jnp.floor(x)
        fy, fx = y - y0, x - x0
        i, j = y0.astype(jnp.int32), x0.astype(jnp.int32)
        top = image[i, j] * (1 - fx) + image[i, j + 1] * fx
        bottom = image[i + 1, j] * (1 - fx) + image[i + 1, j + 1] * fx
        return top * (1 - fy) + bottom * fy

    return {
        "flip uint8 images": lambda x: x[:, :, ::-1],
        "flip float32 rows": lambda x: x[:, ::-1],
        "flip a vector": lambda x: x[::-1],
        "rows by index": lambda t, i: jnp.take(t, i, axis=0, mode="clip"),
        "bilinear": bilinear,
        "images to NCHW": lambda x: jnp.transpose(x.astype(jnp.float32) / 255.0, (0, 3, 1, 2)),
        "images to NHWC": lambda x: jnp.transpose(x, (0, 2, 3, 1)),
        "pad images": lambda x: jnp.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0))),
        "pad a matrix": lambda x: jnp.pad(x, ((1, 1), (1, 1))),
        "roll": lambda x: jnp.roll(x, 5, axis=1),
        "concat columns": lambda x, y: jnp.concatenate([x, y], axis=1),
        "stack columns": lambda x, y: jnp.stack([x, y], axis=-1),
        "tile": lambda x: jnp.tile(x, (2, 3)),
        "repeat": lambda x: jnp.repeat(x, 3, axis=1),
        "every second": lambda x: x[:, ::2],
        "saturating add": lambda a, b: jnp.minimum(a.astype(jnp.int16) + b, 255).astype(jnp.uint8),
        "histogram": lambda x: jnp.bincount(x, length=256),
        "argmax of rows": lambda x: jnp.argmax(x, axis=1),
        "sort rows": lambda x: jnp.sort(x, axis=1),
        "transpose": lambda x: jnp.transpose(x).copy(),
    }


def torches() -> peers.Programs:
    import torch

    return {
        "flip uint8 images": lambda x: x.flip(2),
        "flip float32 rows": lambda x: x.flip(1),
        "flip a vector": lambda x: x.flip(0),
        "rows by index": lambda t, i: torch.index_select(t, 0, i),
        "images to NCHW": lambda x: x.permute(0, 3, 1, 2).contiguous().float() / 255.0,
        "images to NHWC": lambda x: x.permute(0, 2, 3, 1).contiguous(),
        "pad images": lambda x: torch.nn.functional.pad(x, (0, 0, 2, 2, 2, 2)),
        "pad a matrix": lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
        "roll": lambda x: torch.roll(x, 5, 1),
        "concat columns": lambda x, y: torch.cat([x, y], 1),
        "stack columns": lambda x, y: torch.stack([x, y], -1),
        "tile": lambda x: x.tile((2, 3)),
        "repeat": lambda x: x.repeat_interleave(3, 1),
        "every second": lambda x: x[:, ::2].contiguous(),
        "saturating add": lambda a, b: torch.clamp(a.to(torch.int16) + b, max=255).to(torch.uint8),
        "histogram": lambda x: torch.bincount(x, minlength=256),
        "argmax of rows": lambda x: torch.argmax(x, 1),
        "sort rows": lambda x: torch.sort(x, 1)[0],
        "transpose": lambda x: x.T.contiguous(),
    }


def arguments() -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    matrix, other = (rng.standard_normal((1000, 1000), np.float32) for _ in range(2))
    images = rng.integers(0, 256, (32, 64, 64, 3)).astype(np.uint8)
    bytes_ = [rng.integers(0, 256, (1000, 1000)).astype(np.uint8) for _ in range(2)]
    places = [(rng.random(100_000) * 998).astype(np.float32) for _ in range(2)]
    found = {name: [matrix] for name in ours()}
    return found | {
        "flip uint8 images": [images],
        "flip a vector": [matrix.reshape(-1)],
        "rows by index": [rng.standard_normal((20_000, 64), np.float32), rng.integers(0, 20_000, 4096)],
        "bilinear": [matrix, *places],
        "images to NCHW": [images],
        "images to NHWC": [rng.standard_normal((32, 3, 64, 64), np.float32)],
        "pad images": [images.astype(np.float32)],
        "concat columns": [matrix, other],
        "stack columns": [matrix, other],
        "saturating add": bytes_,
        "histogram": [rng.integers(0, 256, 1_000_000)],
    }


if __name__ == "__main__":
    present = peers.sides(OPTIONS.threads, ours, numpys, jaxes, torches)
    peers.compare(OPTIONS, present, arguments())
