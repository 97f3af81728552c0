"""Convolutions and a small network for images against PyTorch (oneDNN) and JAX, in turns, in one process.

    [HF_NUM_THREADS=N] python benchmarks/convolutions.py [--json] [WORD ...]

All sides run on N threads, one unless given.  Only programs whose names have one of the words are measured, if any are
given.  A peer that is not installed is left out (``pip install '.[peers]'``).  The network has two convolutions 3x3 to
32 channels, pooling, two to 64, pooling, and dense layers of 512 and 10, for 32 images of 32x32; a step is its gradient
and an update by RMSprop.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.setdefault("HF_NUM_THREADS", "1")
os.environ["OMP_NUM_THREADS"] = os.environ["HF_NUM_THREADS"]
os.environ["XLA_FLAGS"] = {"1": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}.get(
    os.environ["HF_NUM_THREADS"], ""
)
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf
from hybridflow.cli import measure, output

RNG = np.random.default_rng(0)

# images [n, *s, c], filter [*k, c / groups, o], step; padded to keep places for every step.
SINGLE: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "3x3, 32 channels": ((32, 32, 32, 32), (3, 3, 32, 32), 1),
    "3x3, 256 channels": ((8, 14, 14, 256), (3, 3, 256, 256), 1),
    "1x1": ((8, 28, 28, 128), (1, 1, 128, 128), 1),
    "7x7, step 2": ((8, 112, 112, 3), (7, 7, 3, 64), 2),
    "depthwise 3x3": ((8, 56, 56, 128), (3, 3, 1, 128), 1),
    "groups of 16": ((8, 28, 28, 128), (3, 3, 16, 128), 1),
    "sequences": ((32, 512, 64), (5, 64, 64), 1),
}


def floats(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def weights() -> list[np.ndarray]:
    shapes = [(3, 3, 3, 32), (3, 3, 32, 32), (3, 3, 32, 64), (3, 3, 64, 64), (4096, 512), (512, 10)]
    return [w for shape in shapes for w in (floats(*shape), np.zeros(shape[-1:], np.float32))]


IMAGES = RNG.standard_normal((32, 32, 32, 3)).astype(np.float32)
LABELS = RNG.integers(0, 10, 32)

Run = Callable[[], Any]


def ours() -> dict[str, Run]:
    found: dict[str, Run] = {}
    for name, (_, _, step) in SINGLE.items():
        run = hf.function(lambda x, f, step=step: hf.nn.convolution(x, f, step, "SAME"))
        given = [hf.constant(v) for v in SAMPLES[name]]
        found[name] = lambda run=run, given=given: run(*given)
    own = [hf.Variable(w) for w in weights()]
    optimizer = hf.optimizers.RMSprop(1e-4)

    def network(x: Any) -> Any:
        for k in range(0, 8, 2):
            x = hf.nn.relu(hf.nn.conv2d(x, own[k], 1, "SAME") + own[k + 1])
            if k in (2, 6):
                x = hf.nn.max_pool2d(x, 2, 2, "VALID")
        x = hf.nn.relu(hf.reshape(x, (32, -1)) @ own[8] + own[9])
        return x @ own[10] + own[11]

    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.mean(hf.nn.softmax_cross_entropy(hf.one_hot(y, 10, dtype="float32"), network(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, own), own))
        return loss

    x, y = hf.constant(IMAGES), hf.constant(LABELS)
    inference, training = hf.function(network), hf.function(step)
    return found | {"network": lambda: inference(x), "network, step": lambda: training(x, y)}


def torches() -> dict[str, Run]:
    import torch
    from torch.nn import functional

    torch.set_num_threads(int(os.environ["HF_NUM_THREADS"]))

    def filters(f: np.ndarray) -> Any:
        """[*k, c, o] as PyTorch has it, with channels last in memory."""
        axes = f.ndim - 2
        turned = torch.from_numpy(f).permute(axes + 1, axes, *range(axes))
        return turned.contiguous(memory_format=torch.channels_last) if axes == 2 else turned.contiguous()

    def single(name: str) -> Run:
        x, f = SAMPLES[name]
        axes, step = f.ndim - 2, SINGLE[name][2]
        images = torch.from_numpy(x).permute(0, axes + 1, *range(1, axes + 1))
        convolve = functional.conv2d if axes == 2 else functional.conv1d
        held, groups = filters(f), x.shape[-1] // f.shape[-2]
        return lambda: convolve(images, held, stride=step, padding=f.shape[0] // 2, groups=groups)

    own = [(filters(w) if w.ndim == 4 else torch.from_numpy(w)).requires_grad_() for w in weights()]
    optimizer = torch.optim.RMSprop(own, 1e-4)
    images, labels = torch.from_numpy(IMAGES).permute(0, 3, 1, 2), torch.from_numpy(LABELS)

    def network() -> Any:
        x = images
        for k in range(0, 8, 2):
            x = functional.relu(functional.conv2d(x, own[k], own[k + 1], padding=1))
            if k in (2, 6):
                x = functional.max_pool2d(x, 2)
        x = functional.relu(x.permute(0, 2, 3, 1).reshape(32, -1) @ own[8] + own[9])
        return x @ own[10] + own[11]

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(), labels)
        loss.backward()
        optimizer.step()
        return loss

    def without_gradients(run: Run) -> Run:
        def called() -> Any:
            with torch.no_grad():
                return run()

        return called

    found = {name: without_gradients(single(name)) for name in SINGLE}
    return found | {"network": without_gradients(network), "network, step": step}


def jaxes() -> dict[str, Run]:
    import jax
    from jax import lax, numpy as jnp

    formats = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}

    def convolve(x: Any, f: Any, step: int) -> Any:
        axes = f.ndim - 2
        groups = x.shape[-1] // f.shape[-2]
        return lax.conv_general_dilated(
            x, f, (step,) * axes, "SAME", dimension_numbers=formats[axes], feature_group_count=groups
        )

    def network(own: Any, x: Any) -> Any:
        for k in range(0, 8, 2):
            x = jax.nn.relu(convolve(x, own[k], 1) + own[k + 1])
            if k in (2, 6):
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(x.reshape(32, -1) @ own[8] + own[9])
        return x @ own[10] + own[11]

    def loss(own: Any, x: Any, y: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(network(own, x)), y[:, None], 1))

    def update(own: Any, squares: Any, x: Any, y: Any) -> Any:
        gradients = jax.grad(loss)(own, x, y)
        squares = [0.9 * s + 0.1 * g * g for s, g in zip(squares, gradients)]
        return [w - 1e-4 * g / (jnp.sqrt(s) + 1e-7) for w, g, s in zip(own, gradients, squares)], squares

    state = [[jnp.asarray(w) for w in weights()], [jnp.zeros(w.shape) for w in weights()]]
    x, y = jnp.asarray(IMAGES), jnp.asarray(LABELS)
    inference, training = jax.jit(network), jax.jit(update, donate_argnums=(0, 1))

    def step() -> Any:
        state[:] = training(*state, x, y)
        jax.block_until_ready(state)

    found: dict[str, Run] = {}
    for name in SINGLE:
        made, given = jax.jit(convolve, static_argnums=2), [jnp.asarray(v) for v in SAMPLES[name]]
        found[name] = lambda made=made, given=given, name=name: made(*given, SINGLE[name][2]).block_until_ready()
    held = [jnp.asarray(w) for w in weights()]
    return found | {"network": lambda: inference(held, x).block_until_ready(), "network, step": step}


SAMPLES = {name: (floats(*x), floats(*f)) for name, (x, f, _) in SINGLE.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="measure programs with one of these in their names")
    parser.add_argument("--json", action="store_true", help="print the medians in seconds as JSON")
    options = parser.parse_args()
    sides = {"hybridflow": ours()}
    for side, make in (("torch", torches), ("jax", jaxes)):
        if importlib.util.find_spec(side):
            sides[side] = make()
    rows, results = [], {}
    for name in sides["hybridflow"]:
        if options.words and not any(word in name for word in options.words):
            continue
        timings = measure.interleaved(
            {side: measure.calls(runs[name]) for side, runs in sides.items()}, budget=1.5, least_rounds=9
        )
        results[name] = {side: timing.median for side, timing in timings.items()}
        best = min((side for side in timings if side != "hybridflow"), key=results[name].__getitem__, default=None)
        times = [output.seconds(timings[side].median) for side in sides]
        rows.append([name, *times, f"{results[name][best] / results[name]['hybridflow']:.2f} {best}" if best else "-"])
    if options.json:
        output.print_json(results)
    else:
        print(output.table(["program", *sides, "best peer / ours"], rows))


if __name__ == "__main__":
    main()
