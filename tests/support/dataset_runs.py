"""What tests of datasets have in common: elements as plain values, and runs that are saved and restored anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.data import Dataset


def plain(value: Any) -> Any:
    if isinstance(value, (hf.Tensor, np.ndarray)):
        return value.tolist()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def listed(data: Any) -> list[Any]:
    return [plain(element) for element in data]


def resumed_everywhere(data: Dataset, expected: list[Any]) -> None:
    """A run that is saved at any place goes on, and so does one that is restored there."""
    assert listed(data) == expected
    for count in range(len(expected) + 1):
        running = iter(data)
        begun = [plain(next(running)) for _ in range(count)]
        state = running.state()
        assert begun + listed(running) == expected
        assert listed(iter(data).restore(state)) == expected[count:]
