"""What layers with windows have in common: their arguments."""

from __future__ import annotations

import operator
from typing import Any

from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.layer import Layer


def format_of(data_format: str | None, layer: Layer) -> str:
    """ "channels_last", also where nothing is given, or "channels_first".  Raises ArgumentError for anything else."""
    if data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError(
            layer.name, f"data_format is {data_format!r}; it must be 'channels_last' or 'channels_first'."
        )
    return data_format or "channels_last"


def check_ndim(layer: Layer, inputs: Any, ndim: int) -> None:
    """Raise ShapeError where the input has another number of axes."""
    if inputs.ndim != ndim:
        raise ShapeError(layer.name, f"the input is {inputs.type}; it must have {ndim} axes.")


class WindowLayer(Layer):
    """A layer whose inputs are ``[batch, *places, channels]``, or with ``data_format="channels_first"``
    ``[batch, channels, *places]``; ``_places`` counts the axes of a place."""

    _places: int

    def __init__(self, data_format: str | None, **options: Any) -> None:
        super().__init__(**options)
        self.data_format = format_of(data_format, self)

    @property
    def _channel_axis(self) -> int:
        return -1 if self.data_format == "channels_last" else 1

    def _check(self, inputs: object) -> None:
        check_ndim(self, inputs, self._places + 2)

    def _around(self, pairs: Any) -> list[tuple[int, int]]:
        """Numbers for the places, with none for the batch and the channels, in the order of the input's axes."""
        none = [(0, 0)]
        return [*none, *pairs, *none] if self.data_format == "channels_last" else [*none, *none, *pairs]

    def _each(self, value: object, what: str, least: int = 1) -> tuple[int, ...]:
        """One number for each axis of a place."""
        try:
            numbers = tuple(operator.index(v) for v in (value if isinstance(value, (tuple, list)) else (value,)))
        except TypeError:
            numbers = ()
        if len(numbers) == 1:
            numbers *= self._places
        if len(numbers) != self._places or min(numbers) < least:
            raise ArgumentError(
                self.name, f"{what} is {value!r}; it must be an integer >= {least}, or {self._places} of them."
            )
        return numbers

    def _pairs(self, value: Any, what: str) -> tuple[tuple[int, int], ...]:
        """(before, after) for each axis of a place, from a number for all, one for each, or pairs."""
        pair = self._places == 1 and isinstance(value, (tuple, list)) and len(value) == 2
        pairs = (value,) if pair else value if isinstance(value, (tuple, list)) else (value,) * self._places
        try:
            result = tuple(
                (operator.index(v[0]), operator.index(v[1])) if isinstance(v, (tuple, list)) and len(v) == 2
                else (operator.index(v), operator.index(v))
                for v in pairs
            )  # fmt: skip
        except TypeError:
            result = ()
        if len(result) != self._places or any(n < 0 for one in result for n in one):
            raise ArgumentError(
                self.name, f"{what} is {value!r}; it must be an integer >= 0, or one or a pair for each axis."
            )
        return result

    def _padding(self, value: object, *more: str) -> str:
        kinds = ("valid", "same", *more)
        if not isinstance(value, str) or value.lower() not in kinds:
            raise ArgumentError(self.name, f"padding is {value!r}; it must be one of {', '.join(map(repr, kinds))}.")
        return value.lower()
