"""``tf.summary`` of TensorFlow 1: what is to be written is fetched, and given to a writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from hybridflow.compat.v1.constants import on_host
from hybridflow.compat.v1.dtype_names import STRING
from hybridflow.compat.v1.graph import Graph, default_graph
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.data import TFRecordDataset
from hybridflow.summary import events

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


SUMMARIES = "summaries"


class SummaryValue(NamedTuple):
    """``tf.Summary.Value``: a number with its tag, or what an operation of another kind made."""

    tag: str
    simple_value: float = 0.0
    kind: str = "scalar"
    array: object = None


class _Values(list[SummaryValue]):
    """Those of a summary."""

    def add(self, tag: str, simple_value: float = 0.0) -> SummaryValue:
        self.append(SummaryValue(tag, simple_value))
        return self[-1]


class Summary:
    """What a session has made of summaries, or what a program puts together itself: ``value``."""

    Value = SummaryValue

    def __init__(self, value: Iterable[SummaryValue] = ()) -> None:
        self.value = _Values(value)


def _summary(kind: str, name: str, tensor: object, collections: Iterable[object]) -> Tensor:
    tag = default_graph().unique_name(name, mark_as_used=False)
    tag = f"{tag}/image" if kind == "image" else tag

    def compute(array: Any) -> list[Any]:
        held = array if kind == "text" else np.asarray(array)
        return [Summary([SummaryValue(tag, float(held) if kind == "scalar" else 0.0, kind, held)])]

    result: Tensor = on_host(f"{kind.capitalize()}Summary", name, [tensor], [Info((), STRING)], compute)
    for key in [SUMMARIES] if collections is None else collections:
        default_graph().add_to_collection(key, result)
    return result


def scalar(name: str, tensor: ArrayLike, collections: Any = None, family: object = None) -> Tensor:
    """One number."""
    return _summary("scalar", name, tensor, collections)


def histogram(name: str, values: ArrayLike, collections: Any = None, family: object = None) -> Tensor:
    """How elements are distributed."""
    return _summary("histogram", name, values, collections)


def image(
    name: str,
    tensor: ArrayLike,
    max_outputs: int = 3,
    collections: Any = None,
    family: object = None,
) -> Tensor:
    """Pictures [n, h, w, channels]."""
    return _summary("image", name, tensor, collections)


def text(name: str, tensor: ArrayLike, collections: Any = None) -> Tensor:
    """A text, or several."""
    return _summary("text", name, tensor, collections)


def merge(inputs: Iterable[Any], collections: object = None, name: str | None = None) -> Tensor:
    """Several summaries as one."""

    def compute(*parts: Summary) -> list[Any]:
        return [Summary([value for part in parts for value in part.value])]

    result: Tensor = on_host("MergeSummary", name, list(inputs), [Info((), STRING)], compute)
    return result


def merge_all(key: TensorLike = SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All summaries of the graph as one, or None where there are none."""
    summaries = default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None


class FileWriter:
    """Writes summaries into a folder for TensorBoard; needs ``tensorboardX``."""

    def __init__(
        self,
        logdir: str,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: object = None,
        filename_suffix: str | None = None,
        session: object = None,
    ) -> None:
        self._folder = str(logdir)
        self._file = events.EventFile(logdir)
        if graph is not None:
            self.add_graph(graph)

    def add_summary(self, summary: Summary, global_step: Any = None) -> None:
        step = 0 if global_step is None else int(global_step)
        for value in summary.value:
            more = {"histogram": (30,), "image": (3,)}.get(value.kind, ())
            held = value.simple_value if value.array is None else value.array
            self._file.add(step, getattr(events, value.kind)(value.tag, held, *more))

    def add_session_log(self, session_log: object, global_step: object = None) -> None:
        """Nothing: there are no logs of sessions."""

    def add_run_metadata(self, run_metadata: object, tag: str, global_step: object = None) -> None:
        """Nothing: sessions trace no steps; ``hybridflow.profile`` measures functions."""

    def get_logdir(self) -> str:
        return self._folder

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add_graph(self, graph: Graph, global_step: Any = None) -> None:
        nodes = [(op.name, op.type, tuple([t.op.name for t in op.inputs])) for op in graph.get_operations()]
        self._file.add_graph([events.Node(*node) for node in nodes])

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class FileWriterCache:
    """One writer for each folder."""

    _writers: ClassVar[dict[str, FileWriter]] = {}

    @staticmethod
    def get(logdir: str) -> FileWriter:
        if logdir not in FileWriterCache._writers:
            FileWriterCache._writers[logdir] = FileWriter(logdir)
        return FileWriterCache._writers[logdir]

    @staticmethod
    def clear() -> None:
        for writer in FileWriterCache._writers.values():
            writer.close()
        FileWriterCache._writers.clear()


def summary_iterator(path: str) -> Iterator[Any]:
    """The events in a file, as ``tensorboardX`` has them."""
    for record in TFRecordDataset(path):
        yield events.event_of(bytes(record))


NAMES = {
    "scalar": scalar, "histogram": histogram, "image": image, "text": text, "merge": merge, "merge_all": merge_all,
    "FileWriter": FileWriter, "FileWriterCache": FileWriterCache, "Summary": Summary,
}  # fmt: skip
