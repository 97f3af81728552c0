"""Requests and answers of the Open Inference Protocol, version 2: JSON, with arrays as JSON or as bytes behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.serving.endpoint import DATATYPES, NAMES, Port
from hybridflow.serving.errors import RequestError

try:  # of the extra "serve"; ten times as fast
    import orjson
except ImportError:  # pragma: no cover
    orjson = None  # type: ignore[assignment]

HEADER = "inference-header-content-length"
_MAX_AXES = 32


class Request(NamedTuple):
    """What is asked: an array for each input, and which outputs are wanted, each as bytes or as JSON."""

    id: str | None
    arrays: list[np.ndarray]
    wanted: list[tuple[int, bool]]  # the number of an output, and whether as bytes


def loads(text: bytes) -> Any:
    """JSON.  Raises RequestError for anything else, NaN among it."""
    try:
        if orjson is not None:
            return orjson.loads(text)
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the request is no JSON: {error}.") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON; send such numbers as binary data")


def dumps(value: object) -> bytes:
    """A value as JSON."""
    return orjson.dumps(value) if orjson is not None else json.dumps(value, separators=(",", ":")).encode()


def parse(body: bytes, json_length: int | None, inputs: Sequence[Port], outputs: Sequence[Port]) -> Request:
    """The request in a body, whose first ``json_length`` bytes are JSON and the others arrays.

    Raises RequestError where it is not one for these inputs and outputs.
    """
    length = len(body) if json_length is None else json_length
    if not 0 <= length <= len(body):
        raise RequestError(400, f"the JSON is said to have {length} bytes of {len(body)}.")
    told = loads(body[:length])
    if not isinstance(told, Mapping) or not isinstance(told.get("inputs"), list):
        raise RequestError(400, 'a request is an object with "inputs".')
    arrays = _arrays(told["inputs"], body, length, inputs)
    identity = told.get("id")
    if identity is not None and not isinstance(identity, str):
        raise RequestError(400, f"id is {identity!r:.60}; it must be a text.")
    return Request(identity, arrays, _wanted(told, outputs))


def _arrays(entries: list[Any], body: bytes, place: int, inputs: Sequence[Port]) -> list[np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    ports = {port.name: port for port in inputs}
    for one in entries:
        name = one.get("name") if isinstance(one, Mapping) else None
        port = ports.get(name) if isinstance(name, str) else None
        if port is None:
            raise RequestError(400, f"there is no input {name!r:.60}; the model has {', '.join(ports)}.")
        if port.name in arrays:
            raise RequestError(400, f"the input {name} comes twice.")
        shape = shape_of(one, port)
        parameters = one.get("parameters") or {}
        size = parameters.get("binary_data_size") if isinstance(parameters, Mapping) else None
        if size is None:
            arrays[port.name] = _of_json(one.get("data"), shape, port)
            continue
        arrays[port.name] = array_of_bytes(body, place, size, shape, port)
        place += size
    if place != len(body):
        raise RequestError(400, f"there are {len(body) - place} bytes behind the last input.")
    missing = [name for name in ports if name not in arrays]
    if missing:
        raise RequestError(400, f"the input {missing[0]} is missing.")
    return [arrays[port.name] for port in inputs]


def shape_of(one: Mapping[str, Any], port: Port) -> tuple[int, ...]:
    """The shape of an input, and the check of its dtype, before anything is allocated."""
    shape, kind = one.get("shape"), one.get("datatype")
    if kind == "BYTES":
        raise RequestError(400, f"{port.name} is BYTES; texts are not served.")
    if kind != NAMES[port.dtype]:
        raise RequestError(400, f"{port.name} is {kind!r:.40}; the model takes {NAMES[port.dtype]}.")
    is_one = isinstance(shape, list) and len(shape) <= _MAX_AXES
    if not is_one or any(type(extent) is not int or not 0 <= extent < 1 << 40 for extent in shape):  # type: ignore[union-attr]
        raise RequestError(400, f"{port.name} has the shape {shape!r:.80}; a list of extents is wanted.")
    return tuple(shape)  # type: ignore[arg-type]


def _of_json(data: object, shape: tuple[int, ...], port: Port) -> np.ndarray:
    if port.dtype == DATATYPES["BF16"]:
        raise RequestError(400, f"{port.name} is BF16, which is sent as binary data.")
    if not isinstance(data, list):
        raise RequestError(400, f"{port.name} has no data.")
    try:
        array = np.asarray(data)
        kinds = "b" if port.dtype.kind == "b" else "iu" if port.dtype.kind in "iu" else "iuf"
        if array.size and array.dtype.kind not in kinds:
            raise ValueError(f"its elements are {array.dtype}")
        with np.errstate(over="ignore"):
            result = array.astype(port.dtype)
        if port.dtype.kind not in "biu" and np.isinf(result).any():
            raise ValueError(f"a number is larger than those of {port.dtype}")
        if port.dtype.kind in "iu" and array.size and (result != array).any():
            raise ValueError(f"a number is none of {port.dtype}'s")
        return result.reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        text = f"{port.name} does not fit {NAMES[port.dtype]}{list(shape)}: {error!s:.200}."
        raise RequestError(400, text) from None


def array_of_bytes(body: bytes, place: int, size: object, shape: tuple[int, ...], port: Port) -> np.ndarray:
    if type(size) is not int or not 0 <= size <= len(body) - place:
        raise RequestError(400, f"{port.name} is said to have {size!r:.40} bytes of {len(body) - place}.")
    if math.prod(shape) * port.dtype.itemsize != size:
        raise RequestError(400, f"{port.name} of the shape {list(shape)} does not have {size} bytes.")
    if port.dtype.kind == "b" and max(body[place : place + size], default=0) > 1:
        raise RequestError(400, f"{port.name} has bytes that are no truth values.")
    little = port.dtype.newbyteorder("<")
    array = np.frombuffer(body, little, math.prod(shape), place).astype(port.dtype, copy=False)
    return array.reshape(shape)


def _wanted(told: Mapping[str, Any], outputs: Sequence[Port]) -> list[tuple[int, bool]]:
    parameters = told.get("parameters") or {}
    as_bytes = isinstance(parameters, Mapping) and bool(parameters.get("binary_data_output"))
    outputs_asked = told.get("outputs")
    if not outputs_asked:
        return [(number, as_bytes) for number, _ in enumerate(outputs)]
    numbers = {port.name: number for number, port in enumerate(outputs)}
    result = []
    for one in outputs_asked if isinstance(outputs_asked, list) else [outputs_asked]:
        name = one.get("name") if isinstance(one, Mapping) else None
        if not isinstance(name, str) or name not in numbers:
            raise RequestError(400, f"there is no output {name!r:.60}; the model has {', '.join(numbers)}.")
        options = one.get("parameters") or {}
        result.append(
            (numbers[name], bool(options.get("binary_data", as_bytes)) if isinstance(options, Mapping) else as_bytes)
        )
    return result


def answer(
    model: str, version: str, request: Request, outputs: Sequence[Port], arrays: Sequence[np.ndarray]
) -> tuple[bytes, int | None]:
    """The body of an answer, and how much of it is JSON; None where all of it is.

    Raises RequestError for numbers that JSON lacks.
    """
    told: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for number, as_bytes in request.wanted:
        port, array = outputs[number], arrays[number]
        entry: dict[str, Any] = {"name": port.name, "datatype": NAMES[port.dtype], "shape": list(array.shape)}
        if as_bytes:
            content = bytes_of(array, port)
            entry["parameters"] = {"binary_data_size": len(content)}
            tail.append(content)
        else:
            entry["data"] = _json_data(array, port)
        told.append(entry)
    head: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": told}
    if request.id is not None:
        head["id"] = request.id
    text = dumps(head)
    return (b"".join([text, *tail]), len(text)) if tail else (text, None)


def bytes_of(array: np.ndarray, port: Port) -> bytes:
    """The elements of an output as they are sent."""
    return np.ascontiguousarray(array).astype(port.dtype.newbyteorder("<"), copy=False).tobytes()


def _json_data(array: np.ndarray, port: Port) -> list[Any]:
    if port.dtype.kind not in "biu":
        if port.dtype == DATATYPES["BF16"]:
            raise RequestError(400, f"{port.name} is BF16: ask for it with binary_data.")
        if not np.isfinite(array).all():
            raise RequestError(406, f"{port.name} has NaN or infinity, which JSON lacks: ask for it with binary_data.")
    result: list[Any] = array.ravel().tolist()
    return result


def address(host: str, port: int) -> str:
    """How a host and a port are written together."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
