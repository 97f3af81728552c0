"""The largest error of elementary functions over all float32 arguments, on demand.

    python -m benchmarks.ulp exp tanh          all 2**32 arguments, minutes each
    python -m benchmarks.ulp --stride 64       every 64th (plus a changing offset) of every function

Functions of two arguments have no such list; tests/compiler/codegen/test_elementary.py samples them.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from hybridflow.compiler.ops import elementary
from tests.support.ulp import BINARY, REFERENCE, compiled, measured

_CHUNK = 1 << 21


def worst(name: str, stride: int) -> tuple[float, float]:
    """(largest error, its argument)."""
    run = compiled(name, np.dtype(np.float32))
    largest, where = 0.0, 0.0
    lanes = np.arange(_CHUNK, dtype=np.uint64) * np.uint64(stride)
    for chunk, start in enumerate(range(0, 1 << 32, _CHUNK * stride)):
        bits = lanes + np.uint64(start + chunk % stride)
        x = bits[bits < 1 << 32].astype(np.uint32).view(np.float32)
        error = measured(name, run(x), x)
        at = int(np.argmax(error))
        if error[at] > largest:
            largest, where = float(error[at]), float(x[at])
    return largest, where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="function")
    parser.add_argument("--stride", type=int, default=1)
    options = parser.parse_args()
    for name in options.names or [n for n in REFERENCE if n not in BINARY]:
        largest, where = worst(name, options.stride)
        print(f"{name:8s} {largest:.3f} ULP at {where!r}, stated {elementary.ULP[name, 'f32']}", flush=True)


if __name__ == "__main__":
    main()
