"""A model as a table: its layers, what they give, and how many parameters they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.layers.functional_graph import Input
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer


def table(model: Any, line_length: int | None = None, expand_nested: bool = False, show_trainable: bool = False) -> str:
    """The text of ``model.summary()``."""
    columns = 4 if show_trainable else 3
    rows = [("Layer (type)", "Output Shape", "Param #", "Trainable")[:columns]]
    rows += [row[:columns] for row in _rows(model, expand_nested, 0, model.trainable)]
    widths = [max(len(row[column]) for row in rows) for column in range(columns)]
    if line_length is not None:
        widths[0] = max(line_length - sum(widths[1:]) - 2 * (columns - 1), len(rows[0][0]))
    lines = [
        "  ".join(_fit(cell, width, column) for column, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows
    ]
    rule = "-" * (sum(widths) + 2 * (columns - 1))
    count, free = _size(model.weights), _size(model.trainable_variables)
    return "\n".join(
        [
            f'Model: "{model.name}"',
            rule,
            lines[0],
            rule,
            *lines[1:],
            rule,
            f"Total params: {_number(count, model.weights)}",
            f"Trainable params: {_number(free, model.trainable_variables)}",
            f"Non-trainable params: {_number(count - free, model.non_trainable_weights)}",
        ]
    )


def _rows(model: object, expand_nested: bool, depth: int, is_trained: bool) -> list[tuple[str, ...]]:
    """A row for each layer; none is trained in a model that ``is_trained`` says is not."""
    rows: list[tuple[str, ...]] = []
    for layer, shape in layers_and_shapes(model):
        kind = type(layer).__name__ if isinstance(layer, Layer) else "function"
        name = getattr(layer, "name", None) or getattr(layer, "__name__", kind)
        count = f"{_size(layer.weights):,}" if isinstance(layer, Layer) and layer.built else "?"
        free = is_trained and getattr(layer, "trainable", False)
        trained = ("Y" if free else "N") if getattr(layer, "weights", ()) else "-"
        rows.append((f"{'  ' * depth}{name} ({kind})", shape, count if isinstance(layer, Layer) else "0", trained))
        if expand_nested and hasattr(layer, "layers"):
            rows += _rows(layer, expand_nested, depth + 1, free)
    return rows


def layers_and_shapes(model: Any) -> list[tuple[Any, str]]:
    """The layers, each with the shape of its output as far as that is known."""
    calls = getattr(model, "_graph", None)
    if calls is not None:
        return [(call.layer, _shape(call.result())) for call in calls]
    ends: Sequence[Any] = getattr(model, "_ends", ())
    seen = getattr(model, "_seen_shape", None)
    if not ends and isinstance(seen, tuple) and seen:
        ends = _traced(model.layers, seen)
    shapes = [_shape(end) for end in ends]
    return [(layer, shapes[i] if i < len(shapes) else "?") for i, layer in enumerate(model.layers)]


def _traced(layers: Sequence[Any], shape: tuple[Any, ...]) -> list[Any]:
    """What layers make of an input of that shape, up to the first that is a plain function."""
    last: object = Input(shape[1:])
    ends = []
    for layer in layers:
        if not isinstance(layer, Layer):
            break
        calls = list(layer.__dict__.get("_calls", ()))
        try:
            last = layer(last)
        except Exception:  # it does not say what it gives without data
            break
        finally:
            layer.__dict__["_calls"] = calls
        ends.append(last)
    return ends


def _shape(result: object) -> str:
    if isinstance(result, Symbol):
        return str(result.shape)
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    return ", ".join(_shape(part) for part in parts)


def _size(variables: Sequence[Any]) -> int:
    return sum(int(variable.size) for variable in variables)


def _number(count: int, variables: Sequence[Any]) -> str:
    size = float(sum(int(v.size) * v.dtype.itemsize for v in variables))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{count:,} ({size:.2f} {unit})"
        size /= 1024
    raise AssertionError


def _fit(cell: str, width: int, column: int) -> str:
    cell = cell if len(cell) <= width else f"{cell[: width - 1]}…"
    return cell.rjust(width) if column == 2 else cell.ljust(width)
