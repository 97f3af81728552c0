"""How far a run is, for the user to see: a bar on a terminal, a line for each epoch in a log."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

from hybridflow.core.tensor import Tensor

_SECONDS = 0.05  # between two looks at what is logged, which means waiting for it


class Progress:
    """One run's.  ``level`` is 0 for nothing, 1 for a bar (by ``tqdm``, where that is installed), 2 for lines."""

    def __init__(self, level: int, params: dict[str, Any]) -> None:
        self.level = 2 if level == 1 and importlib.util.find_spec("tqdm") is None else level
        self._epochs, self._steps = params.get("epochs"), params.get("steps")
        self._params = params
        self._bar: Any = None
        self._begun = self._shown = 0.0
        self._count = 0
        self.is_open = False

    def begin(self, epoch: int | None) -> None:
        """An epoch begins, or a run that has none."""
        self.is_open, self._count, self._begun = True, 0, time.perf_counter()
        if epoch is not None and self._epochs is not None and self.level:
            title = f"Epoch {epoch + 1}/{self._epochs}"
            if self.level == 2:
                print(title, flush=True)
        else:
            title = ""
        if self.level == 1:
            from tqdm.auto import tqdm

            kind = type("Bar", (tqdm,), {"monitor_interval": 0})  # without a thread that outlives it
            self._bar = kind(total=self._steps, desc=title or None, unit="batch", leave=True, file=sys.stdout)

    def step(self, batch: int, logs: dict[str, Any]) -> None:
        """Batches up to this one are done."""
        new, self._count = batch + 1 - self._count, batch + 1
        if self._bar is None:
            return
        self._bar.update(new)
        now = time.perf_counter()
        if now - self._shown > _SECONDS:
            self._shown = now
            self._bar.set_postfix(_texts(logs), refresh=False)

    def end(self, logs: dict[str, Any]) -> None:
        """The epoch, or the run, ends with this logged."""
        self.is_open = False
        if self._steps is None:
            self._steps = self._count or None
        if self._bar is not None:
            self._bar.set_postfix(_texts(logs))
            self.close()
        elif self.level == 2:
            took = time.perf_counter() - self._begun
            each = f" - {took / self._count * 1e3:.3g}ms/step" if self._count else ""
            parts = [f"{name}: {text}" for name, text in _texts(logs).items()]
            print(" - ".join([f"{self._count}/{self._count} - {took:.2f}s{each}", *parts]), flush=True)

    def close(self) -> None:
        """Leave the terminal as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _texts(logs: dict[str, Any]) -> dict[str, str]:
    result = {}
    for name, value in logs.items():
        number = value.item() if isinstance(value, Tensor) and value.size == 1 else value
        if isinstance(number, (int, float)):
            result[name] = f"{number:.4f}" if 1e-3 <= abs(number) < 1e4 or number == 0 else f"{number:.4e}"
    return result
