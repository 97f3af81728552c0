"""Damaged files of HDF5's kinds, read in a process of its own, since HDF5's library is in C.

python -m tests.support.damaged_hdf5 SEED COUNT    prints the exceptions that are none of ours, and their number
"""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import hybridflow as hf
from tests.support.fuzz_files import damage_bytes


def main(seed: int, count: int) -> int:
    warnings.simplefilter("ignore")
    folder, r = Path(tempfile.mkdtemp()), random.Random(seed)
    model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    model.save(folder / "m.keras")
    model.save_weights(folder / "m.weights.h5")
    with h5py.File(folder / "m.h5", "w") as file:
        file.attrs["layer_names"] = [b"dense"]
        group = file.create_group("dense")
        group.attrs["weight_names"] = [b"dense/kernel:0"]
        group["dense/kernel:0"] = np.ones((3, 2), np.float32)

    def arrays(path: Path) -> None:
        weights = hf.weights.read(path)
        for name in weights:
            weights.numpy(name)

    readers: dict[str, Callable[[Path], Any]] = {
        "m.keras": hf.models.load_model,
        "m.weights.h5": lambda path: model.load_weights(path, skip_mismatch=True),
        "m.h5": arrays,
    }
    others = 0
    for name, read in readers.items():
        path = folder / name
        whole = path.read_bytes()
        for number in range(count):
            path.write_bytes(damage_bytes(whole, r))
            try:
                read(path)
            except hf.errors.HybridflowError:
                continue
            except Exception as error:
                others += 1
                print(name, number, repr(error)[:300])
    return others


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 100))
