"""``tf.summary`` of TensorFlow 1: what is to be written is fetched, and given to a writer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridflow.compat.v1.functions import on_host
from hybridflow.compat.v1.graph import Graph, Info, Tensor, default_graph
from hybridflow.compat.v1.kinds import STRING
from hybridflow.summary import events

SUMMARIES = "summaries"


class Summary(NamedTuple):
    """What a session has made of summaries: the kind of each, its tag, and its array."""

    values: tuple[tuple[str, str, np.ndarray], ...]


def _summary(kind: str, name: str, tensor: Any, collections: Any) -> Tensor:
    tag = default_graph().unique_name(name, mark_as_used=False)

    def compute(array: Any) -> list[Any]:
        return [Summary(((kind, tag, np.asarray(array)),))]

    made: Tensor = on_host(f"{kind.capitalize()}Summary", name, [tensor], [Info((), STRING)], compute)
    for key in [SUMMARIES] if collections is None else collections:
        default_graph().add_to_collection(key, made)
    return made


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None) -> Tensor:
    """One number."""
    return _summary("scalar", name, tensor, collections)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Tensor:
    """How elements are distributed."""
    return _summary("histogram", name, values, collections)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None) -> Tensor:
    """Pictures [n, h, w, channels]."""
    return _summary("image", name, tensor, collections)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """Several summaries as one."""

    def compute(*parts: Summary) -> list[Any]:
        return [Summary(tuple([value for part in parts for value in part.values]))]

    made: Tensor = on_host("MergeSummary", name, list(inputs), [Info((), STRING)], compute)
    return made


def merge_all(key: Any = SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All summaries of the graph as one, or None where there are none."""
    found = default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


class FileWriter:
    """Writes summaries into a folder for TensorBoard; needs ``tensorboardX``."""

    def __init__(self, logdir: str, graph: Graph | None = None, *_: Any, **__: Any) -> None:
        self._file = events.EventFile(logdir)
        if graph is not None:
            self.add_graph(graph)

    def add_summary(self, summary: Summary, global_step: Any = None) -> None:
        step = 0 if global_step is None else int(global_step)
        for kind, tag, array in summary.values:
            more = {"scalar": (), "histogram": (30,), "image": (3,)}[kind]
            self._file.add(step, getattr(events, kind)(tag, array, *more))

    def add_graph(self, graph: Graph, global_step: Any = None) -> None:
        nodes = [(op.name, op.type, tuple([t.op.name for t in op.inputs])) for op in graph.get_operations()]
        self._file.add_graph([events.Node(*node) for node in nodes])

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


NAMES = {
    "scalar": scalar, "histogram": histogram, "image": image, "merge": merge, "merge_all": merge_all,
    "FileWriter": FileWriter, "Summary": Summary,
}  # fmt: skip
