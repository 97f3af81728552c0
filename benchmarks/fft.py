"""Fourier transforms, a step of a flow and a log-mel spectrogram, beside NumPy's, SciPy's, JAX's and torch's.

    python benchmarks/fft.py [--only NAME] [--threads 1] [--rounds N] [--cpu]

All sides take turns; peers that are not installed are left out.  Printed are the medians in microseconds, the spread
of ours (largest over least), and the best peer's over ours.  With --cpu it is the time of processors, which another
load on the machine does not change much.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.linalg import prepare

_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
_parser.add_argument("--only", default="")
_parser.add_argument("--threads", type=int, default=1)
_parser.add_argument("--rounds", type=int, default=15)
_parser.add_argument("--cpu", action="store_true")

Side = tuple[str, Callable[[], Any]]
SHAPES = ((1 << 10,), (1 << 16,), (1 << 20,), (1000,), (1009,), (512, 512), (1000, 256))
LEAST = 0.004  # seconds of a measurement
WARM = 0.5  # seconds before the first one: what is called often is compiled as a whole behind


def peers() -> dict[str, Any]:
    """The modules that are installed."""
    found: dict[str, Any] = {}
    for name in ("numpy", "scipy.fft", "jax", "torch"):
        try:
            found[name] = __import__(name, fromlist=["_"])
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
    return found


def transforms(libraries: dict[str, Any], threads: int) -> dict[str, list[Side]]:
    """Complex transforms along the last axis, of 512 x 512 along both; of float32 and float64 parts."""
    import numpy as np

    import hybridflow as hf

    rng = np.random.default_rng(0)
    found: dict[str, list[Side]] = {}
    for dtype in ("complex64", "complex128"):
        for shape in SHAPES:
            name = "fft2" if shape == (512, 512) else "fft"
            z = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
            sides = [("hybridflow", functools.partial(getattr(hf.fft, name), hf.asarray(z)))]
            sides.append(("numpy", functools.partial(getattr(np.fft, name), z)))
            if "scipy.fft" in libraries:
                sides.append(("scipy", functools.partial(getattr(libraries["scipy.fft"], name), z, workers=threads)))
            if "torch" in libraries:
                torch = libraries["torch"]
                sides.append(("torch", functools.partial(getattr(torch.fft, name), torch.from_numpy(z))))
            if "jax" in libraries:
                jax = libraries["jax"]
                compiled = jax.jit(getattr(jax.numpy.fft, name))
                sides.append(("jax", functools.partial(finished, compiled, jax.numpy.asarray(z))))
            found[f"{name} {'x'.join(map(str, shape))} {dtype}"] = sides
    return found


def finished(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of JAX, when it is there."""
    return function(*arguments).block_until_ready()


def flow(xp: Any, fft: Any, w: Any, k: Any, mask: Any) -> Any:
    """A step of the vorticity of a flow in two dimensions: w is the transform of the vorticity."""
    kx, ky = k[:, None], k[None, :257]
    square = kx * kx + ky * ky
    stream = w / xp.where(square == 0, 1.0, square)
    u, v = fft.irfft2(1j * ky * stream), fft.irfft2(-1j * kx * stream)
    across, along = fft.irfft2(1j * kx * w), fft.irfft2(1j * ky * w)
    change = -fft.rfft2(u * across + v * along) * mask
    return (w + 1e-3 * change) / (1.0 + 1e-6 * square)


def flows(libraries: dict[str, Any]) -> dict[str, list[Side]]:
    """A step of a flow on 512 x 512 points in float32, compiled where a library compiles."""
    import numpy as np

    import hybridflow as hf

    rng = np.random.default_rng(0)
    w = np.fft.rfft2(rng.normal(size=(512, 512))).astype("complex64")
    k = (np.fft.fftfreq(512) * 512).astype("float32")
    mask = ((np.abs(k)[:, None] < 170) & (np.abs(k)[None, :257] < 170)).astype("float32")
    ours, given = hf.function(lambda w, k, mask: flow(hf, hf.fft, w, k, mask)), [hf.asarray(v) for v in (w, k, mask)]
    sides: list[Side] = [("hybridflow", lambda: ours(*given)), ("numpy", lambda: flow(np, np.fft, w, k, mask))]
    if "torch" in libraries:
        torch = libraries["torch"]
        tensors = [torch.from_numpy(v) for v in (w, k, mask)]
        sides.append(("torch", lambda: flow(torch, torch.fft, *tensors)))
    if "jax" in libraries:
        jax = libraries["jax"]
        step = jax.jit(lambda w, k, mask: flow(jax.numpy, jax.numpy.fft, w, k, mask))
        arrays = [jax.numpy.asarray(v) for v in (w, k, mask)]
        sides.append(("jax", lambda: step(*arrays).block_until_ready()))
    return {"flow 512x512 float32": sides}


def spectrograms(libraries: dict[str, Any]) -> dict[str, list[Side]]:
    """The logarithm of the mel spectrogram of 60 s of sound at 16 kHz: frames of 400 samples, 160 apart, 80 bands."""
    import numpy as np

    import hybridflow as hf

    sound = np.random.default_rng(0).normal(size=960000).astype("float32")
    bands = np.array(hf.signal.linear_to_mel_weight_matrix(80, 257, 16000, 60.0, 7600.0))
    window = np.array(hf.signal.hann_window(400))

    def log_mel(x: Any, bands: Any) -> Any:
        return hf.log(hf.signal.spectrogram(x, 400, 160, 512) @ bands + 1e-6)

    ours, given = hf.function(log_mel), [hf.asarray(v) for v in (sound, bands)]
    sides: list[Side] = [("hybridflow", lambda: ours(*given))]
    if "torch" in libraries:
        torch = libraries["torch"]
        x, weights, m = (torch.from_numpy(v) for v in (sound, window, bands))

        def of_torch() -> Any:
            spectra = torch.fft.rfft(x.unfold(0, 400, 160) * weights, 512)
            return torch.log(spectra.abs().square() @ m + 1e-6)

        sides.append(("torch", of_torch))
    if "jax" in libraries:
        jax = libraries["jax"]
        jnp = jax.numpy
        places = np.arange((960000 - 400) // 160 + 1)[:, None] * 160 + np.arange(400)

        @jax.jit
        def of_jax(x: Any, m: Any) -> Any:
            spectra = jnp.fft.rfft(x[places] * window, 512)
            return jnp.log(jnp.square(jnp.abs(spectra)) @ m + 1e-6)

        arrays = jnp.asarray(sound), jnp.asarray(bands)
        sides.append(("jax", lambda: of_jax(*arrays).block_until_ready()))
    return {"log mel of 60 s": sides}


def measure(sides: list[Side], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of each side in each round."""
    turns = {}
    for name, run in sides:
        until = time.perf_counter() + WARM
        for k in itertools.count():
            run()
            if k >= 3 and time.perf_counter() > until:
                break
        start = time.perf_counter()
        run()
        turns[name] = max(1, int(LEAST / max(time.perf_counter() - start, 1e-7)))
    found: dict[str, list[float]] = {name: [] for name, _ in sides}
    for _ in range(rounds):
        for name, run in sides:
            start = clock()
            for _ in range(turns[name]):
                run()
            found[name].append((clock() - start) / turns[name])
    return found


def main() -> None:
    given = _parser.parse_args()
    prepare(str(given.threads))
    libraries = peers()
    if "jax" in libraries:
        libraries["jax"].config.update("jax_enable_x64", True)
    if "torch" in libraries:
        libraries["torch"].set_num_threads(given.threads)
    import hybridflow as hf

    hf.config.set_num_threads(given.threads)
    programs = {**transforms(libraries, given.threads), **flows(libraries), **spectrograms(libraries)}
    clock = time.process_time if given.cpu else time.perf_counter
    ratios = []
    for name, sides in programs.items():
        if given.only not in name:
            continue
        seconds = measure(sides, given.rounds, clock)
        middle = {side: statistics.median(values) for side, values in seconds.items()}
        ours = middle.pop("hybridflow")
        best = min(middle, key=middle.__getitem__)
        ratios.append(middle[best] / ours)
        spread = max(seconds["hybridflow"]) / min(seconds["hybridflow"])
        others = "  ".join(f"{side} {1e6 * value:.1f}" for side, value in middle.items())
        print(f"{name:28} {1e6 * ours:10.1f} (x{spread:.2f})   {others}   {best} {ratios[-1]:.2f}", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean of {len(ratios)}: {mean:.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
