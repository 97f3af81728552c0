"""The model that a configuration describes: layers one after another or as a graph, a file, or a trunk with layers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import Any

import hybridflow as hf
from hybridflow.cli.training import signatures
from hybridflow.cli.training.config import Config, suggestion
from hybridflow.cli.training.toml_lines import Path
from hybridflow.errors import HybridflowError
from hybridflow.layers.layer import Layer


def _table(
    input: list | dict | None = None,
    layers: list = (),  # type: ignore[assignment]
    outputs: list | str | None = None,
    file: str | None = None,
    trunk: str | None = None,
    trunk_outputs: list | None = None,
    trunk_trainable: bool = False,
    weights: str | None = None,
    weights_source: str | None = None,
    freeze: list = (),  # type: ignore[assignment]
) -> None:
    """What ``[model]`` takes."""


PARAMETERS = signatures.parameters(_table)


class Trunk(Layer):
    """The model of an ONNX file as a layer."""

    def __init__(self, path: str, outputs: Sequence[str] | None, trainable: bool) -> None:
        super().__init__(name="trunk")
        self.model = hf.onnx.load(path, trainable, outputs)

    def call(self, inputs: object) -> Any:
        return self.model(*inputs) if isinstance(inputs, (list, tuple)) else self.model(inputs)


def model_of(config: Config, x: object) -> Any:
    """The model, with its weights where a file has them.  ``x`` are the inputs that it is for."""
    value = config.values.get("model")
    if value is None:
        raise config.error((), "there is no [model].")
    table = signatures.checked(config, ("model",), value, PARAMETERS, "[model]")
    if "file" in table:
        if "layers" in table or "trunk" in table:
            raise config.error(("model", "file"), "a file is the whole model; leave out layers and trunk.")
        model = _of_file(config, table["file"])
    else:
        model = _of_layers(config, table, x)
    if "weights" in table:
        path, source = config.absolute(table["weights"]), table.get("weights_source")
        try:
            model.load_weights(path, source=source)
        except (HybridflowError, OSError) as error:
            raise config.error(("model", "weights"), signatures.text_of(error)) from None
    for place, pattern in enumerate(table.get("freeze", ())):
        names = [layer.name for layer in model.layers]
        chosen = [layer for layer in model.layers if fnmatch.fnmatchcase(layer.name, str(pattern))]
        if not chosen:
            raise config.error(("model", "freeze", place), f"no layer is called {pattern!r}; {suggestion('', names)}")
        for layer in chosen:
            layer.trainable = False
    return model


def _of_file(config: Config, file: str) -> Any:
    path = config.absolute(file)
    try:
        if path.endswith(".json"):
            with open(path, encoding="utf-8") as stream:
                return hf.models.model_from_json(stream.read())
        return hf.models.load_model(path, compile=False)
    except (HybridflowError, OSError, ValueError) as error:
        raise config.error(("model", "file"), f"{path}: {signatures.text_of(error)}") from None


def _of_layers(config: Config, table: dict[str, Any], x: object) -> Any:
    symbols = _inputs(config, table.get("input"), x)
    inputs = list(symbols.values())
    last: Any = inputs[0] if len(inputs) == 1 else inputs
    if "trunk" in table:
        path = config.absolute(table["trunk"])
        trainable = table.get("trunk_trainable", False)
        last = _called(config, ("model", "trunk"), lambda: Trunk(path, table.get("trunk_outputs"), trainable)(last))
        symbols["trunk"] = last
    layers = table.get("layers", ())
    for place, one in enumerate(layers):
        here: Path = ("model", "layers", place)
        sources = None
        if isinstance(one, dict) and "inputs" in one:
            sources = one["inputs"]
            one = {name: part for name, part in one.items() if name != "inputs"}
        layer = signatures.made(config, here, one, "layers")
        if sources is not None:
            names = sources if isinstance(sources, list) else [sources]
            chosen = [_symbol(config, (*here, "inputs"), symbols, name) for name in names]
            last = chosen if isinstance(sources, list) else chosen[0]
        last = _applied(config, here, layer, last)
        symbols[layer.name] = last
    if not layers and "trunk" not in table:
        raise config.error(("model",), "it has no layers; give layers, a file or a trunk.")
    ends = table.get("outputs")
    if ends is not None:
        names = ends if isinstance(ends, list) else [ends]
        chosen = [_symbol(config, ("model", "outputs"), symbols, name) for name in names]
        last = chosen if isinstance(ends, list) else chosen[0]
    heads: object = {name: symbols[name] for name in x} if isinstance(x, dict) else inputs[0]
    return hf.models.Functional(heads, last, name="model")


def _applied(config: Config, path: Path, layer: Any, last: object) -> Any:
    return _called(config, path, lambda: layer(last))


def _called(config: Config, path: Path, call: Callable[..., object]) -> Any:
    try:
        return call()
    except (HybridflowError, OSError, ImportError, TypeError, ValueError) as error:
        raise config.error(path, signatures.text_of(error)) from None


def _symbol(config: Config, path: Path, symbols: dict[str, Any], name: object) -> Any:
    if not isinstance(name, str) or name not in symbols:
        raise config.error(path, f"no layer before it is called {name!r}; {suggestion(str(name), symbols)}")
    return symbols[name]


def _inputs(config: Config, input_config: object, x: Any) -> dict[str, Any]:
    """The inputs by name.  What the file does not say, the data do."""
    arrays = x if isinstance(x, dict) else {"input": x}
    if isinstance(input_config, dict):
        unknown = next((name for name in input_config if name not in arrays), None)
        if unknown is not None:
            raise config.unknown(("model", "input", unknown), unknown, arrays)
    elif input_config is not None and len(arrays) > 1:
        raise config.error(("model", "input"), f"there are several inputs: {', '.join(arrays)}; give a table.")
    inputs = {}
    for name, array in arrays.items():
        shape = (input_config.get(name) if isinstance(input_config, dict) else input_config) or list(array.shape[1:])
        path = ("model", "input", name) if isinstance(input_config, dict) else ("model", "input")
        if not isinstance(shape, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
            raise config.error(path, f"{shape!r} is no shape; write [28, 28, 1].")
        fits = len(shape) == array.ndim - 1 and all(n in (-1, m) for n, m in zip(shape, array.shape[1:]))
        if not fits:
            raise config.error(path, f"the shape is {shape}, and the data are {list(array.shape[1:])}.")
        sizes = [None if n == -1 else n for n in shape]
        inputs[name] = hf.Input(sizes, dtype=str(array.dtype), name=name)
    return inputs
