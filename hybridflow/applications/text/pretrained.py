"""What language models share: parameters by the names that Hugging Face's files have, and how they are read."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.array.linalg import matmul
from hybridflow.array.shapes import permute_dims, reshape
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, CheckpointError
from hybridflow.module import Module
from hybridflow.nn.functional import layer_norm
from hybridflow.weights.reading import read

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_INDEX = "model.safetensors.index.json"
_FILES = "model.safetensors", "pytorch_model.bin"
_LARGEST = 1 << 34  # bytes of one array of parameters


class Pretrained(Module):
    """A model whose parameters have the names and shapes of Hugging Face's state dicts."""

    _prefix: ClassVar[str]  # what a model with a head of its own has before the names
    _ignored: ClassVar[tuple[str, ...]] = ()  # endings of names in files that are no parameters
    _checked: ClassVar[Mapping[str, Any]] = {}  # what a configuration must not differ in

    def _make(self, shapes: Mapping[str, tuple[int, ...]], seed: int) -> None:
        """Make the parameters: weights of small random numbers, biases 0, factors of normalisation 1."""
        rng = np.random.default_rng(seed)
        self.parameters: dict[str, Variable] = {}
        for name, shape in shapes.items():
            if any(extent < 1 for extent in shape):
                raise ArgumentError(self.name, f"{name} would have the shape {shape}: sizes are 1 and more.")
            if np.prod(shape, dtype=float) * 4 > _LARGEST:
                raise ArgumentError(self.name, f"{name} would have the shape {shape}, which no machine has room for.")
            if len(shape) > 1:
                array = 0.02 * rng.standard_normal(shape, np.float32)
            else:
                array = (np.zeros if name.endswith("bias") else np.ones)(shape, np.float32)
            self.parameters[name] = Variable(array, name=name)

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Give the parameters their values: from a ``.safetensors`` or ``.bin`` file, or a folder with such.

        Args:
            path: the file or folder.

        Returns:
            The model.

        Raises:
            CheckpointError: where names or shapes differ; nothing is changed then.
        """
        arrays: dict[str, Any] = {}
        for file in _files(Path(path)):
            weights = read(file)
            for name in weights:
                known = self._known(name)
                if known is not None:
                    arrays[known] = (weights, name)
        missing = sorted(self.parameters.keys() - arrays.keys())
        if missing:
            raise CheckpointError(self.name, f"{path} lacks {', '.join(missing[:5])}; {len(missing)} in all.")
        for name, (weights, there) in arrays.items():
            shape = tuple(self.parameters[name].shape)
            if weights.shape(there) != shape:
                raise CheckpointError(self.name, f"{there} of {path} is {weights.shape(there)}; it is {shape} here.")
        with suspended():
            for name, (weights, there) in arrays.items():
                variable = self.parameters[name]
                variable.assign(asarray(weights.numpy(there), dtype=variable.dtype))
        return self

    def _known(self, name: str) -> str | None:
        """The parameter that a name in a file is of; None for what is none.  Raises CheckpointError for others."""
        for one in (name, name.removeprefix(self._prefix), f"{self._prefix}{name}"):
            if one in self.parameters:
                return one
        if name.endswith(self._ignored):
            return None
        raise CheckpointError(self.name, f"the file has {name!r}, which this model has not.")

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str]) -> Self:
        """The model of a folder with ``config.json`` and files of weights, as Hugging Face's are.

        Args:
            path: the folder.

        Returns:
            A new model with the weights of the folder.

        Raises:
            ArgumentError: for a configuration of another model, or where there is none.
            CheckpointError: for other weights.
        """
        place = Path(path) / "config.json"
        if not place.is_file():
            raise ArgumentError(cls.__name__, f"there is no {place}, and nothing is downloaded.")
        try:
            held = cls._configuration(json.loads(place.read_text(encoding="utf-8")))
            known = {name: held[name] for name in cls._arguments() if held.get(name) is not None}
        except (ValueError, AttributeError, RecursionError) as error:
            raise ArgumentError(cls.__name__, f"{place} is no configuration: {error!s:.100}.") from None
        for name, usual in cls._checked.items():
            if held.get(name, usual) != usual:
                raise ArgumentError(cls.__name__, f"{name} is {held[name]!r:.60} in {place}; it is {usual!r} here.")
        return cls(**known).load(path)

    @classmethod
    def _configuration(cls, held: dict[str, Any]) -> dict[str, Any]:
        """A configuration as the arguments here have it."""
        return held

    @classmethod
    def _arguments(cls) -> list[str]:
        code = cls.__init__.__code__
        names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        return [name for name in names if name != "seed"]

    # What the models compute with

    def _of(self, name: str) -> Variable:
        return self.parameters[name]

    def _linear(self, x: Any, name: str) -> Any:
        """A product with a weight [outputs, inputs], and a bias where there is one."""
        y = matmul(x, permute_dims(self._of(f"{name}.weight"), (1, 0)))
        bias = self.parameters.get(f"{name}.bias")
        return y if bias is None else y + bias

    def _normalized(self, x: ArrayLike, name: str, epsilon: float) -> Any:
        return layer_norm(x, self._of(f"{name}.weight"), self._of(f"{name}.bias"), -1, epsilon)


def heads(x: Tensor, count: int) -> Any:
    """[batch, steps, features] as [batch, heads, steps, features of one]."""
    batch, steps, width = x.shape
    return permute_dims(reshape(x, (batch, steps, count, width // count)), (0, 2, 1, 3))


def joined(x: Tensor) -> Any:
    """[batch, heads, steps, features of one] as [batch, steps, features]."""
    batch, count, steps, width = x.shape
    return reshape(permute_dims(x, (0, 2, 1, 3)), (batch, steps, count * width))


def _files(path: Path) -> list[str]:
    """The files of weights that a path means."""
    if not path.is_dir():
        return [str(path)]
    for name in _FILES:
        if (path / name).is_file():
            return [str(path / name)]
    index = path / _INDEX
    if not index.is_file():
        raise CheckpointError("weights", f"{path} has neither {' nor '.join((*_FILES, _INDEX))}.")
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError("weights", f"{index} is damaged: {error!r:.100}.") from None
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise CheckpointError("weights", f"{index} names {name!r:.60}, which is no file beside it.")
    return [str(path / name) for name in names]


def load_tokenizer(path: str | os.PathLike[str]) -> Any:
    """Read the tokenizer of a model: Hugging Face's ``tokenizer.json``, or the folder in which it is.

    The library ``tokenizers`` reads it: the extra of that name.

    Args:
        path: the file or the folder.

    Returns:
        A ``tokenizers.Tokenizer``: ``encode(text).ids`` are numbers, and ``decode(ids)`` is a text.

    Raises:
        ArgumentError: where there is no such file, where it is damaged, and where the library is not installed.

    >>> hf.applications.text.load_tokenizer("model/")  # doctest: +SKIP
    """
    place = Path(path)
    place = place / "tokenizer.json" if place.is_dir() else place
    if not place.is_file():
        raise ArgumentError("load_tokenizer", f"there is no {place}, and nothing is downloaded.")
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError:
        raise ArgumentError(
            "load_tokenizer", "the library tokenizers reads it: pip install 'hybridflow[tokenizers]'."
        ) from None
    try:
        return tokenizers.Tokenizer.from_file(str(place))
    except Exception as error:  # the library's own are of no class
        raise ArgumentError("load_tokenizer", f"{place} is no tokenizer: {error!s:.200}.") from None
