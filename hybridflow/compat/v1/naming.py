"""Namespaces of names: what is there, and what is said of what is not."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

# What is not here, and what does the same.
_INSTEAD = {
    "tf.import_graph_def": "graphs are not read from protocol buffers; build the graph by the function that built it",
    "tf.graph_util": "graphs are not written as protocol buffers; hybridflow.saved.save keeps a function with weights",
    "tf.train.import_meta_graph": "graphs are not written beside checkpoints; build the graph again, then restore",
    "tf.train.export_meta_graph": "graphs are not written beside checkpoints; tf.train.Saver saves the variables",
    "tf.estimator": "there are no estimators; use tf.train.MonitoredTrainingSession, or tf.keras and fit",
    "tf.contrib.slim": "there is no slim; use tf.layers",
    "tf.sparse_placeholder": "feed the parts: indices, values and the shape",
}


class Namespace:
    """Names of a part of TensorFlow, ``tf.nn``.  Those that it has not are looked up in a ``fallback``."""

    def __init__(self, path: str, names: Mapping[str, Any], fallback: Callable[[str], Any] | None = None) -> None:
        self._path, self._names, self._fallback = path, dict(names), fallback

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        result = self._names.get(name)
        if result is None and self._fallback is not None:
            result = self._fallback(name)
            if result is not None:
                self._names[name] = result
        if result is None:
            raise AttributeError(missing(self._path, name, self._names))
        return result

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<{self._path}: {len(self._names)} names>"


def missing(path: str, name: str, names: Mapping[str, Any]) -> str:
    """What is said of a name that is not there: the nearest that is."""
    if f"{path}.{name}" in _INSTEAD:
        return f"{path} has no {name!r} in hybridflow: {_INSTEAD[f'{path}.{name}']}."
    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean {path}.{near[0]}?" if near else ""
    return f"{path} has no {name!r} in hybridflow.{hint}"
