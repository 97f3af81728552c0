"""Event files, as TensorBoard reads them.  The one module that needs ``tensorboardX``."""

from __future__ import annotations

import io
import itertools
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridflow.errors import ArgumentError, writing_to

_numbers = itertools.count()


class Node(NamedTuple):
    """A node of a graph that is shown: its name, what it does, and the names of those that it takes."""

    name: str
    op: str
    inputs: tuple[str, ...]


class EventFile:
    """One file of events in a folder, which is made if need be.  Threads may share it; it has none of its own.

    Raises ImportError, which says how to install it, without ``tensorboardX``.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        try:
            from tensorboardX import event_file_writer
        except ImportError:
            raise ImportError(
                "hf.summary writes through tensorboardX, which is not installed: pip install 'hybridflow[tensorboard]' "
                "or tensorboardX."
            ) from None
        os.makedirs(folder, exist_ok=True)
        file_suffix = f".{os.getpid()}.{next(_numbers)}{suffix}"
        self._path = os.path.join(folder, "events")  # as far as it is known
        with writing_to(self._path):  # it writes an event of its own
            self._file: Any = event_file_writer.EventsWriter(self._path, file_suffix)
        self._path = getattr(self._file, "_file_name", self._path)
        self._lock = threading.Lock()

    def add(self, step: int, values: object) -> None:
        """Write what one of the functions below made, at a step."""
        from tensorboardX.proto import event_pb2, summary_pb2

        self._write(event_pb2.Event(wall_time=time.time(), step=step, summary=summary_pb2.Summary(value=values)))

    def add_graph(self, nodes: Iterable[Node]) -> None:
        """Write a graph."""
        from tensorboardX.proto import event_pb2, graph_pb2

        graph_def = graph_pb2.GraphDef()
        for node in nodes:
            graph_def.node.add(name=node.name, op=node.op, input=list(node.inputs))
        self._write(event_pb2.Event(wall_time=time.time(), graph_def=graph_def.SerializeToString()))

    def _write(self, event: object) -> None:
        with self._lock, writing_to(self._path):
            self._file.write_event(event)

    def flush(self) -> None:
        """Have all that was written on the disk."""
        with self._lock, writing_to(self._path):
            self._file.flush()

    def close(self) -> None:
        """Flush, and let go of the file."""
        with self._lock, writing_to(self._path):
            self._file.close()


def event_of(record: bytes) -> Any:
    """An event as it was written into a file."""
    from tensorboardX.proto import event_pb2

    return event_pb2.Event.FromString(record)


def _value(tag: str, **content: object) -> Any:
    from tensorboardX.proto import summary_pb2

    return summary_pb2.Summary.Value(tag=tag, **content)


def scalar(tag: str, data: object) -> list[Any]:
    """A number."""
    return [_value(tag, simple_value=float(np.asarray(data).reshape(())))]


def histogram(tag: str, data: object, buckets: int) -> list[Any]:
    """How many elements lie in each of ``buckets`` equal parts of their range."""
    from tensorboardX.proto import summary_pb2

    values = np.asarray(data, np.float64).ravel()
    finite = values[np.isfinite(values)]
    fields: dict[str, Any] = {"num": float(finite.size)}
    if finite.size:
        counts, edges = np.histogram(finite, bins=buckets)
        fields |= {"min": finite.min(), "max": finite.max(), "sum": finite.sum(), "sum_squares": (finite**2).sum()}
        fields |= {"bucket_limit": [edges[0], *edges[1:]], "bucket": [0.0, *counts.astype(float)]}
    return [_value(tag, histo=summary_pb2.HistogramProto(**fields))]


def image(tag: str, data: object, most: int) -> list[Any]:
    """Pictures ``[k, height, width, channels]``, at most ``most`` of them."""
    from tensorboardX.proto import summary_pb2

    pictures = np.asarray(data)
    if pictures.ndim != 4 or pictures.shape[3] not in (1, 2, 3, 4):
        raise ArgumentError(
            "summary.image", f"{tag!r} has the shape {pictures.shape}; it must be [k, height, width, 1 to 4 channels]."
        )
    if pictures.dtype != np.uint8:
        pictures = (np.clip(np.nan_to_num(np.asarray(pictures, np.float64)), 0, 1) * 255).round().astype(np.uint8)
    result = []
    for number, picture in enumerate(pictures[:most]):
        height, width, channels = picture.shape
        content = summary_pb2.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=png(picture)
        )
        result.append(_value(_numbered(tag, number, min(most, len(pictures))), image=content))
    return result


def audio(tag: str, data: object, rate: int, most: int) -> list[Any]:
    """Sounds ``[k, frames, channels]`` of numbers from -1 to 1."""
    import wave  # a user's file may have this name, which nobody else should come upon

    from tensorboardX.proto import summary_pb2

    sounds = np.asarray(data, np.float64)
    if sounds.ndim != 3:
        raise ArgumentError("summary.audio", f"{tag!r} has the shape {sounds.shape}; it must be [k, frames, channels].")
    result = []
    for number, sound in enumerate(sounds[:most]):
        frames, channels = sound.shape
        held = io.BytesIO()
        with wave.open(held, "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes((np.clip(np.nan_to_num(sound), -1, 1) * 32767).round().astype("<i2").tobytes())
        content = summary_pb2.Summary.Audio(
            sample_rate=rate,
            num_channels=channels,
            length_frames=frames,
            encoded_audio_string=held.getvalue(),
            content_type="audio/wav",
        )
        result.append(_value(_numbered(tag, number, min(most, len(sounds))), audio=content))
    return result


def text(tag: str, data: object) -> list[Any]:
    """A text, in Markdown, or several."""
    from tensorboardX.proto import summary_pb2, tensor_pb2, tensor_shape_pb2

    lines = [str(one).encode() for one in (data if isinstance(data, (list, tuple)) else [data])]
    extents = [tensor_shape_pb2.TensorShapeProto.Dim(size=len(lines))]
    tensor = tensor_pb2.TensorProto(
        dtype="DT_STRING", string_val=lines, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=extents)
    )
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    return [_value(tag, tensor=tensor, metadata=summary_pb2.SummaryMetadata(plugin_data=plugin))]


def hparams(values: dict[str, Any]) -> list[Any]:
    """The numbers and texts that a run was started with."""
    from tensorboardX import summary

    return [value for summary_value in summary.hparams(values, {}) for value in summary_value.value]


def _numbered(tag: str, number: int, count: int) -> str:
    return tag if count == 1 else f"{tag}/{number}"


def png(picture: np.ndarray) -> bytes:
    """A PNG file of ``[height, width, channels]`` of uint8: grey, grey and alpha, RGB, or RGB and alpha."""
    height, width, channels = picture.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)  # 0: not filtered

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(rows.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
