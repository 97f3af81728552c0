"""Models made again: from texts, and as others like them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.layers.functional_graph import InputLayer
from hybridflow.layers.layer import Layer
from hybridflow.models import keras_files
from hybridflow.models.functional import Functional
from hybridflow.models.keras_config import model_of
from hybridflow.models.model import Model
from hybridflow.models.sequential import Sequential
from hybridflow.models.serialization import from_text


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Make the model that ``model.to_json()`` describes, without its weights: hybridflow's, or Keras's of any version.

    Nothing in the text is run.

    Args:
        json_string: a configuration as JSON.
        custom_objects: classes and functions of your own by the names that the text has for them. Classes that were
            defined are found by their names without it.

    Returns:
        A model.

    Raises:
        ArgumentError: for a damaged text or an unknown name.

    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> hf.models.model_from_json(model.to_json()).count_params()
    8
    """
    keras = keras_files.parsed(json_string)
    if keras is not None:
        return model_of(keras, custom_objects)
    result = from_text(json_string, "model_from_json", custom_objects)
    if not isinstance(result, Model):
        raise ArgumentError("model_from_json", f"the text describes {result!r:.60}, which is no model.")
    return result


def clone_model(model: Any, clone_function: Callable[[Any], Any] | None = None) -> Any:
    """Clone a model: another one of the same layers, with weights of its own, which start anew.

    Args:
        model: a model.
        clone_function: makes each layer's counterpart: ``layer.from_config(layer.get_config())`` unless given. It may
            return the layer itself, which both then share.

    Returns:
        A model.

    Raises:
        ArgumentTypeError: for a ``clone_function`` where the model is neither a ``Sequential`` nor a graph of layers.

    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> hf.models.clone_model(model).count_params()
    8
    """
    if not isinstance(model, Model):
        raise ArgumentTypeError("clone_model", f"{model!r:.60} is no model.")
    if clone_function is None:
        return type(model).from_config(model.get_config())
    name, layers = model._name, [clone_function(one) if _is_cloned(one) else one for one in model.layers]
    if isinstance(model, Sequential):
        start = [] if model._start is None else [type(model._start.call.layer).from_config(_input_config(model))]
        return type(model)([*start, *layers], name=name)
    if not isinstance(model, Functional):
        raise ArgumentTypeError("clone_model", "clone_function is for Sequential models and graphs of layers.")
    config = {key: value for key, value in model.graph_config().items() if key != "layers"}
    for place, one in enumerate(model.layers):
        if isinstance(one, InputLayer):
            layers[place] = type(one).from_config(one.get_config())
    return Functional.connect(config, layers, Functional)


def _is_cloned(layer: object) -> bool:
    return isinstance(layer, Layer) and not isinstance(layer, InputLayer)


def _input_config(model: Sequential) -> dict[str, Any]:
    assert model._start is not None
    config: dict[str, Any] = model._start.call.layer.get_config()
    return config
