"""Layers that look up words and numbers in a vocabulary."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybridflow import sparse as sparse_tensors
from hybridflow.array.elementwise import astype
from hybridflow.compiler.ir.dtypes import float32, int64
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.string_tensor import StringTensor, as_strings, holds_texts, string
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer
from hybridflow.ragged import Ragged
from hybridflow.strings import hashing
from hybridflow.strings.host import step

MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")


def mode_of(name: str, mode: Any, allowed: Sequence[str] = MODES) -> str:
    """An output mode by one of its names.  Raises ArgumentError for others."""
    outcome = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(mode, mode)
    if outcome not in allowed:
        raise ArgumentError(name, f"output_mode is {mode!r}. Expected one of {', '.join(map(repr, allowed))}.")
    return str(outcome)


def encoded_shape(mode: str, shape: Sequence[Any], depth: int) -> tuple[Any, ...]:
    """The shape of what encodes numbers of that shape."""
    if mode == "int":
        return tuple(shape)
    if mode == "one_hot":
        kept = shape[:-1] if len(shape) > 1 and isinstance(shape[-1], int) and shape[-1] == 1 else shape
        return (*kept, depth)
    return (*shape[:-1], depth)


def encoded(mode: str, places: np.ndarray, depth: int, dtype: Any = np.int64) -> np.ndarray:
    """Numbers of categories as vectors: one of each, or one of all along the last axis.  What is out of range counts
    nowhere."""
    if mode == "one_hot":
        kept = places.reshape(places.shape[:-1]) if places.ndim > 1 and places.shape[-1] == 1 else places
        return (np.atleast_1d(kept)[..., None] == np.arange(depth)).astype(dtype).reshape(*kept.shape, depth)
    rows = places.reshape(-1, places.shape[-1]) if places.ndim else places.reshape(1, 1)
    out = np.zeros((len(rows), depth), dtype)
    inside = (rows >= 0) & (rows < depth)
    which = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)[inside]
    np.add.at(out, (which, rows[inside]), 1)
    if mode == "multi_hot":
        out = (out > 0).astype(dtype)
    return out.reshape(*places.shape[:-1], depth)


def batches_of(data: Any, steps: int | None, convert: Callable[[Any], Any]) -> Iterable[Any]:
    """The batches of data that a layer adapts to: rows of an array, or what a dataset or a generator gives."""
    if isinstance(data, (list, tuple, np.ndarray, Tensor, Ragged)):
        whole = convert(data)
        yield whole if isinstance(whole, Ragged) or whole.ndim != 1 else whole.reshape(-1, 1)
        return
    for k, batch in enumerate(data):
        if steps is not None and k >= steps:
            return
        yield convert(batch)


class VocabularyWantedError(ArgumentError, RuntimeError):
    """A layer has no vocabulary yet."""


class IndexLookup(Layer):
    """The base of layers that map a vocabulary to numbers, or numbers to a vocabulary."""

    _kind: object = None  # the dtype of keys

    def __init__(
        self,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: object,
        oov_token: object,
        vocabulary: object,
        idf_weights: Any,
        invert: bool,
        output_mode: str,
        pad_to_max_tokens: bool,
        sparse: bool,
        salt: Any = None,
        **options: Any,
    ) -> None:
        options.pop("dtype", None)
        super().__init__(**options)
        if max_tokens is not None and max_tokens <= 1:
            raise ArgumentError(self.name, f"If set, `max_tokens` must be greater than 1. Received: {max_tokens}")
        if pad_to_max_tokens and max_tokens is None:
            raise ArgumentError(self.name, "If pad_to_max_tokens is True, must set `max_tokens`.")
        if num_oov_indices < 0:
            raise ArgumentError(self.name, f"`num_oov_indices` must be 0 or more. Received: {num_oov_indices}")
        self.output_mode = mode_of(self.name, output_mode)
        if invert and self.output_mode != "int":
            raise ArgumentError(self.name, "`output_mode` must be 'int' when `invert` is true.")
        if sparse and self.output_mode == "int":
            raise ArgumentError(self.name, "`sparse` may only be true if `output_mode` is not 'int'.")
        if idf_weights is not None and self.output_mode != "tf_idf":
            raise ArgumentError(self.name, "`idf_weights` should only be set if `output_mode` is 'tf_idf'.")
        self.max_tokens, self.num_oov_indices, self.mask_token = max_tokens, num_oov_indices, mask_token
        self.oov_token, self.invert, self.sparse = oov_token, bool(invert), bool(sparse)
        self.pad_to_max_tokens = bool(pad_to_max_tokens)
        self.salt = None if salt is None else [salt, salt] if isinstance(salt, int) else list(salt)
        self._tokens: list[Any] = []  # without special ones
        self._places: dict[Any, int] = {}
        self._idf: Any = None
        self._static_vocabulary: object = None
        self._counts: collections.Counter[Any] = collections.Counter()
        self._documents: collections.Counter[Any] = collections.Counter()
        self._document_count = 0
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)
            self._static_vocabulary = list(self._tokens)

    # What keys are

    def _key(self, value: object) -> Any:
        raise NotImplementedError

    def _token_of(self, key: Any) -> Any:
        raise NotImplementedError

    def _as_keys(self, inputs: object) -> Any:
        raise NotImplementedError

    def _hash(self, key: Any) -> int:
        raise NotImplementedError

    def _read(self, line: str) -> Any:
        raise NotImplementedError

    # The vocabulary

    def _oov_start(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    def _token_start(self) -> int:
        return self._oov_start() + self.num_oov_indices

    def vocabulary_size(self) -> int:
        """The number of words, with the special ones.

        Returns:
            An int.
        """
        return len(self._tokens) + self._token_start()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The words in the order of their numbers, the special ones first.

        Args:
            include_special_tokens: whether those for masked and unknown words are in it.

        Returns:
            A list of words.
        """
        words = [self._token_of(key) for key in self._tokens]
        if not include_special_tokens:
            return words
        return [self.mask_token] * self._oov_start() + [self.oov_token] * self.num_oov_indices + words

    def set_vocabulary(self, vocabulary: Any, idf_weights: object = None) -> None:
        """Let the layer have a vocabulary.

        Args:
            vocabulary: words, or the path of a file with one in each line.
            idf_weights: a weight for each word, for ``output_mode="tf_idf"``.

        Raises:
            ArgumentError: for words that come twice, an empty vocabulary, more words than ``max_tokens``, or weights
                of another mode.
        """
        if self.output_mode == "tf_idf" and idf_weights is None:
            raise ArgumentError(self.name, "`idf_weights` must be set if output_mode is 'tf_idf'.")
        if self.output_mode != "tf_idf" and idf_weights is not None:
            raise ArgumentError(self.name, "`idf_weights` should only be set if output_mode is 'tf_idf'.")
        if isinstance(vocabulary, (str, os.PathLike)):
            if not Path(vocabulary).exists():
                raise ArgumentError(self.name, f"Vocabulary file {vocabulary} does not exist.")
            vocabulary = [self._read(line) for line in Path(vocabulary).read_text("utf-8").splitlines()]
        if isinstance(vocabulary, Tensor):
            vocabulary = np.asarray(vocabulary)
        keys = [self._key(word) for word in vocabulary]
        if not keys:
            raise ArgumentError(self.name, "Cannot set an empty vocabulary.")
        mask = [] if self.mask_token is None else [self._key(self.mask_token)]
        oov = None if self.oov_token is None else self._key(self.oov_token)
        special = mask * self._oov_start() + [oov] * self.num_oov_indices
        has_special = bool(special) and keys[: len(special)] == special
        words = keys[len(special) :] if has_special else keys
        twice = [self._token_of(key) for key, count in collections.Counter(words).items() if count > 1]
        if twice:
            raise ArgumentError(
                self.name, f"The passed vocabulary has at least one repeated term. The repeated terms are: {twice}"
            )
        for reserved, name in ((mask[0] if mask else None, "mask"), (oov if self.invert else None, "OOV")):
            if reserved is not None and reserved in words:
                raise ArgumentError(self.name, f"Found reserved {name} token at unexpected location in `vocabulary`.")
        size = len(special) + len(words)
        if self.max_tokens is not None and size > self.max_tokens:
            raise ArgumentError(
                self.name,
                "Attempted to set a vocabulary larger than the maximum vocab size. "
                f"Received vocabulary size is {size}; `max_tokens` is {self.max_tokens}.",
            )
        if idf_weights is not None:
            weights = np.asarray(idf_weights, np.float32)
            if len(weights) != len(keys):
                raise ArgumentError(
                    self.name,
                    f"`idf_weights` must be the same length as vocabulary. len(idf_weights) is {len(weights)}; "
                    f"len(vocabulary) is {len(keys)}",
                )
            front = 0 if has_special else len(special)
            self._weigh(np.concatenate([np.full(front, weights.mean(), np.float32), weights]))
        self._set_tokens(words)

    def _set_tokens(self, words: list[Any]) -> None:
        start = self._token_start()
        self._tokens = words
        self._places = {key: k for k, key in enumerate(words, start)}

    def _weigh(self, weights: np.ndarray) -> None:
        missing = (self.max_tokens or 0) - len(weights) if self.pad_to_max_tokens else 0
        self._idf = np.pad(weights, (0, max(missing, 0))).astype(np.float32)

    def adapt(self, data: object, steps: int | None = None) -> None:
        """Learn the vocabulary of data.

        Args:
            data: an array, or an iterable of batches.
            steps: the number of batches that are taken; all unless given.

        Raises:
            ArgumentError: where the vocabulary was given.
        """
        self.reset_state()
        for batch in batches_of(data, steps, self._as_keys):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: object) -> None:
        """Count the words of a batch.

        Args:
            data: an array of words.

        Raises:
            ArgumentError: where the vocabulary was given.
        """
        if self._static_vocabulary is not None:
            raise ArgumentError(
                self.name,
                f"Cannot adapt layer '{self.name}' after setting a static vocabulary via `vocabulary` argument or "
                "`set_vocabulary()` method.",
            )
        keys = self._as_keys(data)
        for row in _rows(keys):
            self._counts.update(row)
            self._documents.update(set(row))
            self._document_count += 1

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted: the most frequent words first, of equals the largest."""
        if self._static_vocabulary is not None or not self._counts:
            return
        for token in (self.mask_token, self.oov_token):
            if token is not None:
                self._counts.pop(self._key(token), None)
        words = sorted(self._counts, reverse=True)
        words.sort(key=lambda key: -self._counts[key])
        if self.max_tokens:
            words = words[: self.max_tokens - self._token_start()]
        self._set_tokens(words)
        if self.output_mode == "tf_idf":
            seen = np.array([self._documents[key] for key in words], np.float64)
            weights = np.log(1 + self._document_count / (1 + seen)).astype(np.float32)
            average = weights.mean() if len(weights) else 0
            self._weigh(np.concatenate([np.full(self._token_start(), average, np.float32), weights]))
        self.reset_state()

    def reset_state(self) -> None:
        """Forget what was counted."""
        self._counts, self._documents, self._document_count = collections.Counter(), collections.Counter(), 0

    # Calls

    def _converted(self, value: object) -> Any:
        return value if value is None or isinstance(value, Symbol) else self._as_keys(value)

    def _depth(self) -> int:
        if self.pad_to_max_tokens:
            assert self.max_tokens is not None
            return self.max_tokens
        if not self._tokens:
            raise VocabularyWantedError(
                self.name,
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens=False`, you must set the layer's "
                "vocabulary before calling it. Either pass a `vocabulary` argument to the layer, or call `adapt`.",
            )
        return self.vocabulary_size()

    def places_of(self, keys: Iterable[Any]) -> list[int]:
        """The numbers of words.

        Args:
            keys: words.

        Returns:
            A list of ints.

        Raises:
            ArgumentError: for unknown words, where there is no number for them.
        """
        places, start, count = self._places, self._oov_start(), self.num_oov_indices
        mask = None if self.mask_token is None else self._key(self.mask_token)
        masked = 0 if self.output_mode == "int" else np.iinfo(np.int64).max
        result, unknown = [], []
        for key in keys:
            place = masked if mask is not None and key == mask else places.get(key, -1)
            if place < 0:
                if not count:
                    unknown.append(self._token_of(key))
                place = start if count == 1 else start + self._hash(key) if count else -1
            result.append(place)
        if unknown:
            raise ArgumentError(
                self.name,
                f"When `num_oov_indices=0` all inputs should be in vocabulary, found OOV values {unknown[:5]}, "
                "consider setting `num_oov_indices=1`.",
            )
        return result

    def _numbers(self, array: np.ndarray) -> np.ndarray:
        return np.array(self.places_of(array.ravel().tolist()), np.int64).reshape(array.shape)

    def call(self, inputs: Any) -> Any:
        """The numbers of words, or an encoding of them, as ``output_mode`` says.

        Args:
            inputs: a tensor of words, or a ragged one; of numbers where the layer is inverted.

        Returns:
            A tensor; for ``output_mode="int"`` int64 of the same shape.
        """
        if self.invert:
            return self._inverted(inputs)
        if self.output_mode == "int":
            if isinstance(inputs, Ragged):
                return inputs.with_values(self.call(inputs.values))
            if isinstance(inputs, sparse_tensors.COO):
                raise ArgumentTypeError(self.name, "sparse inputs are not taken. Give inputs.values.")
            return step(self._numbers, [inputs], [TensorType(inputs.shape, int64)])[0]
        depth, mode = self._depth(), self.output_mode
        dtype = float32 if mode == "tf_idf" else int64
        how = "count" if mode == "tf_idf" else mode

        def run(array: np.ndarray, *splits: np.ndarray) -> Any:
            places = self._numbers(array)
            if splits:
                rows = [places[a:b] for a, b in zip(splits[0][:-1], splits[0][1:])]
                outcome = (
                    np.stack([encoded(how, row, depth) for row in rows]) if rows else np.zeros((0, depth), np.int64)
                )
            else:
                outcome = encoded(how, places, depth)
            return outcome * self._idf if mode == "tf_idf" else outcome

        if isinstance(inputs, Ragged):
            if mode == "one_hot":
                raise ArgumentError(self.name, "rows of a ragged tensor are not one_hot. Use multi_hot or count.")
            count = inputs.row_splits.shape[0] - 1
            out = step(run, [inputs.values, inputs.row_splits], [TensorType((count, depth), dtype)])[0]
        else:
            out = step(run, [inputs], [TensorType(encoded_shape(how, inputs.shape, depth), dtype)])[0]
        return sparse_tensors.from_dense(out) if self.sparse else out

    def _inverted(self, inputs: Any) -> Any:
        if isinstance(inputs, Ragged):
            return inputs.with_values(self._inverted(inputs.values))
        is_text = self._kind is string

        def run(numbers: np.ndarray) -> Any:
            known = dict(enumerate(self._tokens, self._token_start()))
            if self.mask_token is not None:
                known[0] = self._key(self.mask_token)
            unknown = self._key(self.oov_token)
            outcome = [known.get(k, unknown) for k in numbers.ravel().tolist()]
            out: Any = np.empty(len(outcome), object if is_text else np.int64)
            out[:] = outcome
            return out.reshape(numbers.shape)

        kind = TensorType(inputs.shape, string if is_text else int64)
        return step(run, [inputs], [kind])[0]

    def get_config(self) -> dict[str, Any]:
        words = self.get_vocabulary(include_special_tokens=False) if self._tokens else None
        weights = None if self._idf is None else self._idf[self._token_start() :][: len(self._tokens)].tolist()
        names = (
            *("max_tokens", "num_oov_indices", "mask_token", "oov_token", "invert", "output_mode", "sparse"),
            *("pad_to_max_tokens", "salt"),
        )
        config = {name: getattr(self, name) for name in names}
        return super().get_config() | config | {"vocabulary": words, "idf_weights": weights}


def _rows(keys: object) -> Iterable[list[Any]]:
    """The documents of a batch of keys."""
    if isinstance(keys, Ragged):
        splits, values = keys.row_splits.numpy(), np.asarray(keys.values).tolist()
        return [values[a:b] for a, b in itertools.pairwise(splits)]
    array = np.asarray(keys)
    return array.reshape(-1, array.shape[-1]).tolist() if array.ndim > 1 else [array.ravel().tolist()]


class StringLookup(IndexLookup):
    """Lookup of words: texts as their numbers in a vocabulary.

    Unknown words have the number 0; with a ``mask_token`` that is 0 and unknown words 1.  The vocabulary is given, or
    learnt by ``adapt``.

    Args:
        max_tokens: the most words that ``adapt`` keeps, special ones counted; None for all.
        num_oov_indices: how many numbers there are for unknown words; with 0 they are an error.
        mask_token: the text whose number is 0, or None.
        oov_token: what stands for an unknown word.
        vocabulary: the words, or the path of a file with one in each line.
        idf_weights: the weights of the words, for "tf_idf".
        invert: whether numbers become words.
        output_mode: ``"int"``, ``"one_hot"``, ``"multi_hot"``, ``"count"`` or ``"tf_idf"``.
        pad_to_max_tokens: whether vectors have ``max_tokens`` elements, whatever the vocabulary.
        sparse: whether vectors are sparse tensors.
        encoding: the encoding of texts.
        name: the name of the layer.
        salt: a number or two, which hash unknown words in another way.
        **options: options of the base class.

    >>> hf.layers.StringLookup(vocabulary=["red", "green"])(["green", "pink"])
    <Tensor i64[2] cpu> [2 0]
    """

    _kind = string

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: str | None = None,
        oov_token: str | None = "[UNK]", vocabulary: object = None, idf_weights: object = None, invert: bool = False,
        output_mode: str = "int", pad_to_max_tokens: bool = False, sparse: bool = False, encoding: str = "utf-8",
        name: str | None = None, salt: object = None, **options: object,
    ) -> None:  # fmt: skip
        self.encoding = encoding
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
            pad_to_max_tokens, sparse, salt, name=name, **options,
        )  # fmt: skip

    def _key(self, value: object) -> bytes:
        if isinstance(value, str):
            return value.encode(self.encoding, "surrogateescape")
        if isinstance(value, StringTensor):
            value = value.numpy()
        if not isinstance(value, bytes):
            raise ArgumentTypeError(self.name, f"{value!r:.60} is no text.")
        return value

    def _token_of(self, key: bytes) -> str:
        return key.decode(self.encoding, "surrogateescape")

    def _read(self, line: str) -> str:
        return line

    def _as_keys(self, inputs: object) -> Any:
        if isinstance(inputs, Ragged):
            return inputs
        if self.invert:
            return _as_numbers(inputs, self.name)
        return as_strings(inputs, self.name)

    def _hash(self, key: bytes) -> int:
        if self.salt is not None:
            return hashing.siphash(key, (self.salt[0], self.salt[1])) % self.num_oov_indices
        return hashing.fingerprint64(key) % self.num_oov_indices

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"encoding": self.encoding}


class IntegerLookup(IndexLookup):
    """Lookup of integers: numbers as their places in a vocabulary.

    Unknown numbers have the place 0; with a ``mask_token`` that is 0 and unknown ones 1.  The vocabulary is given, or
    learnt by ``adapt``.

    Args:
        max_tokens: the most numbers that ``adapt`` keeps, special ones counted; None for all.
        num_oov_indices: how many places there are for unknown numbers; with 0 they are an error.
        mask_token: the number whose place is 0, or None.
        oov_token: what stands for an unknown number.
        vocabulary: the numbers, or the path of a file with one in each line.
        vocabulary_dtype: "int64".
        idf_weights: the weights of the numbers, for "tf_idf".
        invert: whether places become numbers.
        output_mode: ``"int"``, ``"one_hot"``, ``"multi_hot"``, ``"count"`` or ``"tf_idf"``.
        sparse: whether vectors are sparse tensors.
        pad_to_max_tokens: whether vectors have ``max_tokens`` elements, whatever the vocabulary.
        name: the name of the layer.
        salt: a number or two, which hash unknown numbers.
        **options: options of the base class.

    >>> hf.layers.IntegerLookup(vocabulary=[7, 9])([9, 5])
    <Tensor i64[2] cpu> [2 0]
    """

    _kind = int64

    def __init__(
        self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: int | None = None,
        oov_token: int = -1, vocabulary: object = None, vocabulary_dtype: str = "int64", idf_weights: object = None,
        invert: bool = False, output_mode: str = "int", sparse: bool = False, pad_to_max_tokens: bool = False,
        name: str | None = None, salt: object = None, **options: object,
    ) -> None:  # fmt: skip
        self.vocabulary_dtype = vocabulary_dtype
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
            pad_to_max_tokens, sparse, salt, name=name, **options,
        )  # fmt: skip

    def _key(self, value: Any) -> int:
        return int(value)

    def _token_of(self, key: int) -> int:
        return key

    def _read(self, line: str) -> int:
        return int(line)

    def _as_keys(self, inputs: object) -> Any:
        return inputs if isinstance(inputs, Ragged) else _as_numbers(inputs, self.name)

    def _hash(self, key: int) -> int:
        if self.salt is not None:
            return hashing.siphash(b"%d" % key, (self.salt[0], self.salt[1])) % self.num_oov_indices
        return key % self.num_oov_indices

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"vocabulary_dtype": self.vocabulary_dtype}


def _as_numbers(inputs: object, name: str) -> Any:
    if holds_texts(inputs) or isinstance(inputs, StringTensor):
        raise ArgumentTypeError(name, "texts were given where numbers are looked up. Use StringLookup.")
    x = inputs._seen() if isinstance(inputs, Variable) else as_tensor(inputs, name)
    return x if x.dtype == int64 else astype(x, int64)
