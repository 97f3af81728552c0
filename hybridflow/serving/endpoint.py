"""What a model offers to a server: named inputs and outputs, and a call on arrays."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow import saved
from hybridflow.array.creation import asarray
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, HybridflowError, short_location
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.serving.errors import RequestError

_STAGE = "serve"
# The names that the Open Inference Protocol has for dtypes.
DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BF16": dtypes.bfloat16,
}
NAMES = {dtype: name for name, dtype in DATATYPES.items()}


class Port(NamedTuple):
    """An input or output.  Extents that may be any are None."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def metadata(self) -> dict[str, Any]:
        """How the protocol describes it."""
        shape = [-1 if extent is None else extent for extent in self.shape]
        return {"name": self.name, "datatype": NAMES[self.dtype], "shape": shape}


class Endpoint:
    """A function of a saved file with its inputs and outputs by name.

    Args:
        function: a function that ``hf.saved.load`` returned.
    """

    def __init__(self, function: Any) -> None:
        program = function.programs[0]
        self._function = function
        self._structure, self._leaves = program.structure, program.leaves
        paths = [path.replace("['", ".").replace("']", "") for path in function._binder.paths(program.structure)]
        self.inputs = [
            _port(name, leaf) for name, leaf in zip(paths, program.leaves, strict=True) if isinstance(leaf, TensorSpec)
        ]
        outputs, self._results = pytree.flatten(program.structured_outputs)
        names = _result_names(program.structured_outputs)
        self._given = [isinstance(leaf, TensorSpec) for leaf in outputs]
        self.outputs = [_port(name, leaf) for name, leaf in zip(names, outputs) if isinstance(leaf, TensorSpec)]
        if not self.inputs:
            raise ArgumentError(_STAGE, f"{function.name} takes no tensor, and cannot be asked anything.")
        ports = (*self.inputs, *self.outputs)
        is_open = bool(self.outputs) and all(port.shape and port.shape[0] is None for port in ports)
        self.is_batched = is_open and self._is_by_row()

    def rename(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Take these names, where there are as many."""
        if len(inputs) == len(self.inputs):
            self.inputs = [port._replace(name=name) for port, name in zip(self.inputs, inputs)]
        if len(outputs) == len(self.outputs):
            self.outputs = [port._replace(name=name) for port, name in zip(self.outputs, outputs)]

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise RequestError for arrays of other dtypes or shapes than the inputs'."""
        for port, array in zip(self.inputs, arrays, strict=True):
            fits = len(array.shape) == len(port.shape) and all(
                wanted is None or wanted == extent for wanted, extent in zip(port.shape, array.shape)
            )
            if not fits:
                shape = ["any" if extent is None else extent for extent in port.shape]
                raise RequestError(400, f"{port.name} has the shape {list(array.shape)}; the model takes {shape}.")
        if self.is_batched and len({array.shape[0] for array in arrays}) > 1:
            rows = ", ".join(f"{port.name} {array.shape[0]}" for port, array in zip(self.inputs, arrays))
            raise RequestError(400, f"inputs have other numbers of rows: {rows}.")

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs.  Raises RequestError where the program refuses the values."""
        rest = iter(arrays)
        # Tensors are what native calls take: arrays of NumPy go by way of Python.
        leaves = [asarray(next(rest)) if isinstance(leaf, TensorSpec) else leaf for leaf in self._leaves]
        try:
            positional, named = self._function._binder.split(pytree.unflatten(self._structure, leaves))
            result = self._function(*positional, **named)
        except HybridflowError as error:
            place = f"  ({short_location(error.where)})" if error.where else ""
            raise RequestError(400, str(error).removesuffix(place)) from None  # a place in the server, or its libraries
        leaves_of_result = pytree.flatten(result)[0]
        return [
            x.numpy() if isinstance(x, Tensor) else np.asarray(x)
            for x, one in zip(leaves_of_result, self._given)
            if one
        ]

    def _is_by_row(self) -> bool:
        """Whether rows of the inputs have rows of the outputs of their own, which is tried.

        An open extent may be the length of a series as well as a batch: sums over it, or its order, would mix what
        several asked.  What is refused counts as mixed.
        """
        generator = np.random.default_rng(0)
        try:
            for _ in range(2):
                parts = [[_sample(generator, array) for array in self.example(rows)] for rows in (3, 2)]
                alone = [self(part) for part in parts]
                joined = self([np.concatenate(arrays) for arrays in zip(*parts)])
                for output, *row_alone in zip(joined, *alone):
                    if not _is_close(output, row_alone):
                        return False
        except RequestError:
            return False
        return True

    def example(self, rows: int) -> list[np.ndarray]:
        """Zeros for each input, of that many rows where the batch is open, and 1 where other extents are."""
        return [
            np.zeros(
                [rows if n == 0 and e is None else 1 if e is None else e for n, e in enumerate(port.shape)], port.dtype
            )
            for port in self.inputs
        ]


def _sample(generator: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Values that most models take: 0 and 1 of whole numbers, others between them."""
    if array.dtype.kind in "biu":
        return generator.integers(0, 2, array.shape).astype(array.dtype)
    return generator.uniform(0.1, 0.9, array.shape).astype(array.dtype)


def _is_close(output: np.ndarray, parts: list[np.ndarray]) -> bool:
    """Whether an output is those of parts of the inputs, but for the order of sums."""
    if any(part.shape[1:] != output.shape[1:] for part in parts) or output.shape[0] != sum(map(len, parts)):
        return False
    wanted = np.concatenate(parts)
    if output.dtype.kind in "biu":
        return bool((output == wanted).all())
    actual, wanted = output.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(wanted[np.isfinite(wanted)])
    tolerance = (1e-4 if output.dtype.itemsize >= 4 else 0.05) * finite.max(initial=0.0)
    return bool(np.allclose(actual, wanted, rtol=0.0, atol=tolerance, equal_nan=True))


def _port(name: str, spec: TensorSpec) -> Port:
    dtype = np.dtype(spec.dtype)
    if dtype not in NAMES:
        raise ArgumentError(_STAGE, f"{name} is {dtype}, for which the protocol has no name.")
    return Port(name, dtype, tuple(extent if isinstance(extent, int) else None for extent in spec.shape))


def _result_names(result: object) -> list[str]:
    """Names for the leaves of a result: the keys of a dict, else their numbers."""
    if isinstance(result, dict):
        keys = pytree.flatten(result)[1].labels  # in the order of the leaves, which is not that of the dict
        return [key if not sub else f"{key}.{sub}" for key in keys for sub in _inner_names(result[key])]
    return [f"output_{number}" for number, _ in enumerate(pytree.flatten(result)[0])]


def _inner_names(part: object) -> list[str]:
    leaves = pytree.flatten(part)[0]
    return [""] if len(leaves) == 1 else [str(number) for number, _ in enumerate(leaves)]


def load(path: str) -> Endpoint:
    """The endpoint of a file: one of ``hf.saved.save``, an ONNX or Keras model.

    Raises the errors of the readers, and ArgumentError for a file with several functions of which none is the one
    that is called.
    """
    if path.endswith(".onnx"):
        from hybridflow import onnx

        model = onnx.load(path)
        with _saved(model) as file:
            endpoint = _of_file(file, path)
        endpoint.rename(model.input_names, model.output_names)
        return endpoint
    with saved_form(path) as file:
        return _of_file(file, path)


@contextlib.contextmanager
def saved_form(path: str) -> Iterator[str]:
    """A file as ``hf.saved.save`` writes it: the file itself, or one of the programs of an ONNX or Keras model."""
    if path.endswith(".onnx"):
        from hybridflow import onnx

        module: object = onnx.load(path)
    elif path.endswith((".keras", ".h5", ".hdf5")):
        from hybridflow import models

        module = models.load_model(path, compile=False)
    else:
        yield path
        return
    with _saved(module) as file:
        yield file


@contextlib.contextmanager
def _saved(module: object) -> Iterator[str]:
    """A file of a module, whose programs are traced as they are for one."""
    with tempfile.TemporaryDirectory(prefix="hybridflow-") as folder:
        path = os.path.join(folder, "model")
        saved.save(module, path)
        yield path


def of_function(function: object) -> Endpoint:
    """The endpoint of an ``hf.function`` with an ``input_signature``, or one that was called."""
    with _saved(function) as file:
        return _of_file(file, getattr(function, "name", "model"))


def _of_file(path: str, what: str) -> Endpoint:
    loaded = saved.load(path)
    function = loaded._called
    if function is None:
        raise ArgumentError(_STAGE, f"{what} has the functions {', '.join(loaded.functions)}; save one as __call__.")
    return Endpoint(function)
