"""Layers that turn texts into numbers: words of texts, hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from hybridflow import sparse as sparse_tensors
from hybridflow.array.shapes import reshape, squeeze
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.dtypes import float32, int64
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.string_tensor import StringTensor, as_strings, holds_texts
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.layers.lookup import StringLookup, batches_of, encoded, encoded_shape, mode_of
from hybridflow.ragged import Ragged
from hybridflow.strings import functions, hashing
from hybridflow.strings.host import extent, step

_PUNCTUATION = b"!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
_STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")


class TextVectorization(Layer):
    """Text vectorization: texts as the numbers of their words.

    Texts are standardized, split into words, and words, or n-grams of them, looked up in a vocabulary, which is given
    or learnt by ``adapt``.  The number 0 fills up, 1 is for unknown words.

    Args:
        max_tokens: the most words that ``adapt`` keeps, special ones counted; None for all.
        standardize: ``"lower_and_strip_punctuation"``, ``"lower"``, ``"strip_punctuation"``, None, or a function of
            tensors of texts.
        split: ``"whitespace"``, ``"character"``, None, or a function that makes ragged rows of texts.
        ngrams: the most words of an n-gram, or a tuple of the numbers of words; None for words alone.
        output_mode: ``"int"``, ``"multi_hot"``, ``"count"`` or ``"tf_idf"``.
        output_sequence_length: the number of words that each row is cut or filled up to.
        pad_to_max_tokens: whether vectors have ``max_tokens`` elements, whatever the vocabulary.
        vocabulary: the words, or the path of a file with one in each line.
        idf_weights: the weights of the words, for "tf_idf".
        sparse: whether vectors are sparse tensors.
        ragged: whether rows of numbers are ragged.
        encoding: the encoding of texts.
        name: the name of the layer.
        **options: options of the base class.

    >>> layer = hf.layers.TextVectorization(output_sequence_length=3)
    >>> layer.adapt(["blue sky", "blue sea"])
    >>> layer(["sky over sea"])
    <Tensor i64[1,3] cpu>
    [[3 1 4]]
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: str | Callable[..., Any] | None = "lower_and_strip_punctuation",
        split: Any = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: object = None,
        idf_weights: object = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **options: Any,
    ) -> None:
        options.pop("dtype", None)
        super().__init__(name=name, **options)
        if standardize is not None and standardize not in _STANDARDS and not callable(standardize):
            raise ArgumentError(
                self.name, f"standardize is {standardize!r}. Expected one of {_STANDARDS} or a function."
            )
        if split not in (None, "whitespace", "character") and not callable(split):
            raise ArgumentError(self.name, f"split is {split!r}. Expected 'whitespace', 'character' or a function.")
        sizes = (ngrams,) if isinstance(ngrams, int) else ngrams
        if sizes is not None and not (isinstance(sizes, (tuple, list)) and all(isinstance(n, int) for n in sizes)):
            raise ArgumentError(
                self.name, f"`ngrams` must be None, an integer, or a tuple of integers, not {ngrams!r}."
            )
        mode = mode_of(self.name, output_mode)
        if mode == "int" and not isinstance(output_sequence_length, (int, type(None))):
            raise ArgumentError(self.name, "`output_sequence_length` must be None or an integer.")
        if mode != "int" and output_sequence_length is not None:
            raise ArgumentError(self.name, "`output_sequence_length` must not be set if `output_mode` is not 'int'.")
        if ragged and mode != "int":
            raise ArgumentError(self.name, "`ragged` must not be true if `output_mode` is not 'int'.")
        self.standardize, self.split, self.ngrams, self.output_mode = standardize, split, ngrams, mode
        self.output_sequence_length, self.ragged, self.encoding = output_sequence_length, bool(ragged), encoding
        self._widths = (
            tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else None if ngrams is None else tuple(ngrams)
        )
        self._lookup_layer = StringLookup(
            max_tokens, vocabulary=vocabulary, idf_weights=idf_weights, pad_to_max_tokens=pad_to_max_tokens,
            mask_token="", output_mode=mode, sparse=sparse, encoding=encoding,
        )  # fmt: skip

    def _converted(self, value: object) -> Any:
        return value if value is None or isinstance(value, (Symbol, Ragged)) else as_strings(value, self.name)

    # The vocabulary

    def adapt(self, data: object, batch_size: int | None = None, steps: int | None = None) -> None:
        """Learn the vocabulary of texts.

        Args:
            data: an array of texts, or an iterable of batches.
            batch_size: ignored.
            steps: the number of batches that are taken; all unless given.

        Raises:
            ArgumentError: where the vocabulary was given.
        """
        self.reset_state()
        for batch in batches_of(data, steps, lambda value: as_strings(value, self.name)):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: object) -> None:
        """Count the words of a batch of texts.

        Args:
            data: an array of texts.

        Raises:
            ArgumentError: where the vocabulary was given.
        """
        x = as_strings(data, self.name)
        self._lookup_layer.update_state(self._words(x.reshape(1) if not x.ndim else x))

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        self._lookup_layer.finalize_state()

    def reset_state(self) -> None:
        """Forget what was counted."""
        self._lookup_layer.reset_state()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """The words in the order of their numbers, the special ones first.

        Args:
            include_special_tokens: whether those for padding and unknown words are in it.

        Returns:
            A list of words.
        """
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def set_vocabulary(self, vocabulary: object, idf_weights: ArrayLike | None = None) -> None:
        """Let the layer have a vocabulary.

        Args:
            vocabulary: words, or the path of a file with one in each line.
            idf_weights: a weight for each word, for ``output_mode="tf_idf"``.

        Raises:
            ArgumentError: for words that come twice, an empty vocabulary, more words than ``max_tokens``, or weights
                of another mode.
        """
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    def vocabulary_size(self) -> int:
        """The number of words, with the special ones.

        Returns:
            An int.
        """
        return self._lookup_layer.vocabulary_size()

    # Calls

    def _plain(self, text: bytes) -> bytes:
        if self.standardize in ("lower", "lower_and_strip_punctuation"):
            text = text.lower()
        if self.standardize in ("strip_punctuation", "lower_and_strip_punctuation"):
            text = text.translate(None, _PUNCTUATION)
        return text

    def _split_row(self, text: bytes) -> list[bytes]:
        if self.split == "whitespace":
            return text.split()
        if self.split == "character":
            return [letter.encode() for letter in text.decode("utf-8", "replace")]
        return [text]

    def _grams(self, row: list[bytes]) -> list[bytes]:
        if self._widths is None:
            return row
        return [b" ".join(row[k : k + n]) for n in self._widths for k in range(len(row) - n + 1)]

    def _words(self, inputs: Any) -> Any:
        """The words of texts: ragged rows, or without a split the texts as they came."""
        x: Any = inputs if isinstance(inputs, Ragged) else as_strings(inputs, self.name)
        own_split = callable(self.split)
        if callable(self.standardize):
            x = self.standardize(x)
        elif own_split or self.split is None:
            x = functions.mapped(self.name, self._plain, x)
        plain = (lambda text: text) if callable(self.standardize) else self._plain
        if isinstance(x, Ragged) or self.split is None:
            return x if self._widths is None else functions.ngrams(x, self._widths)
        if x.ndim > 1:
            self._check_last(x)
            x = squeeze(x, axis=-1)
        if own_split:
            outcome = self.split(x)
            return outcome if self._widths is None else functions.ngrams(outcome, self._widths)
        return functions._split_rows(
            self.name, x, lambda text: self._grams(self._split_row(plain(text))), [functions.string]
        )[0]

    def call(self, inputs: Tensor) -> Any:
        """The words of texts by their numbers, or an encoding of them, as ``output_mode`` says.

        Args:
            inputs: a tensor of texts.

        Returns:
            For ``output_mode="int"`` an int64 tensor [batch, words], or a ragged one; else a tensor [batch,
            vocabulary].
        """
        length = self.output_sequence_length
        if length is not None and not self.ragged and self._is_plain and not isinstance(inputs, Ragged):
            return self._whole(inputs, length)
        is_single = not isinstance(inputs, Ragged) and not inputs.ndim
        words = self._words(reshape(inputs, (1,)) if is_single else inputs)
        outcome = self._lookup_layer(words)
        if self.output_mode == "int":
            if isinstance(outcome, Ragged):
                if self.ragged and not is_single:
                    return outcome
                outcome = outcome.to_tensor(shape=(None, length)) if length is not None else _padded(outcome)
            elif length is not None:
                outcome = _cut(outcome, length)
        return squeeze(outcome, axis=0) if is_single else outcome

    @property
    def _is_plain(self) -> bool:
        """Whether texts are split as the layer knows."""
        return self.split in ("whitespace", "character") and not callable(self.split)

    def _whole(self, inputs: Any, length: int) -> Any:
        """Rows of one length, at once."""
        if callable(self.standardize):
            inputs = self.standardize(inputs)
        plain = (lambda text: text) if callable(self.standardize) else self._plain
        kept = inputs.shape
        if len(kept) > 1:
            self._check_last(inputs)
            kept = kept[:-1]

        def run(texts: np.ndarray) -> Any:
            flat = texts.ravel().tolist()
            out = np.zeros((len(flat), length), np.int64)
            for row, text in zip(out, flat):
                words = self._grams(self._split_row(plain(text)))[:length]
                row[: len(words)] = self._lookup_layer.places_of(words)
            return out.reshape(*(texts.shape[:-1] if texts.ndim > 1 else texts.shape), length)

        return step(run, [inputs], [TensorType((*kept, length), int64)])[0]

    def _check_last(self, x: Any) -> None:
        if not isinstance(x.shape[-1], int) or x.shape[-1] != 1:
            raise ShapeError(
                self.name,
                "When using `TextVectorization` to tokenize strings, the input rank must be 1 or the last shape "
                f"dimension must be 1. Received: {x.type}",
            )

    def get_config(self) -> dict[str, Any]:
        chosen = self._lookup_layer.get_config()
        names = "standardize", "split", "ngrams", "output_mode", "output_sequence_length", "ragged", "encoding"
        shared = "max_tokens", "pad_to_max_tokens", "vocabulary", "idf_weights", "sparse"
        config = {name: getattr(self, name) for name in names} | {name: chosen[name] for name in shared}
        return super().get_config() | config


def _padded(outcome: Ragged) -> Any:
    """Rows of a length that nobody gave: as long as the longest."""
    splits = outcome.row_splits
    width = extent(lambda ends: np.int64(np.diff(ends).max() if len(ends) > 1 else 0), [splits])
    return outcome.to_tensor(shape=(None, width))


def _cut(outcome: Any, length: int) -> Any:
    """Rows cut or filled up with 0 to a length."""

    def run(array: np.ndarray) -> Any:
        kept = array[..., :length]
        return np.pad(kept, [(0, 0)] * (array.ndim - 1) + [(0, length - kept.shape[-1])])

    return step(run, [outcome], [TensorType((*outcome.shape[:-1], length), int64)])[0]


class Hashing(Layer):
    """Hashing: texts and integers as the numbers of ``num_bins`` bins.

    Args:
        num_bins: the number of bins.
        mask_value: what has the bin 0, which nothing else has then.
        salt: a number or two: SipHash with these as its key, instead of FarmHash.
        output_mode: ``"int"``, ``"one_hot"``, ``"multi_hot"`` or ``"count"``.
        sparse: whether vectors are sparse tensors.
        **options: options of the base class.

    >>> hf.layers.Hashing(3)([["A"], ["B"]])
    <Tensor i64[2,1] cpu>
    [[1]
     [0]]
    """

    def __init__(
        self, num_bins: int, mask_value: object = None, salt: object = None, output_mode: str = "int",
        sparse: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:  # fmt: skip
        dtype = options.pop("dtype", None)
        super().__init__(**options)
        if not isinstance(num_bins, int) or num_bins <= 0:
            raise ArgumentError(self.name, f"`num_bins` cannot be `None` or non-positive. Received: {num_bins}.")
        self.output_mode = mode_of(self.name, output_mode, ("int", "one_hot", "multi_hot", "count"))
        if sparse and self.output_mode == "int":
            raise ArgumentError(self.name, "`sparse` may only be true if `output_mode` is not 'int'.")
        if salt is not None and not isinstance(salt, int) and not (isinstance(salt, (list, tuple)) and len(salt) == 2):
            raise ArgumentError(self.name, f"The `salt` can only be a tuple of 2 integers, or an integer, not {salt}.")
        self.num_bins, self.mask_value, self.sparse = num_bins, mask_value, bool(sparse)
        self.salt = None if salt is None else [salt, salt] if isinstance(salt, int) else list(salt)
        self._result_dtype = (
            np.dtype(dtype) if isinstance(dtype, str) else int64 if self.output_mode == "int" else float32
        )

    def _converted(self, value: object) -> Any:
        if value is None or isinstance(value, (Symbol, Ragged)):
            return value
        return as_strings(value, self.name) if holds_texts(value) else as_tensor(value, self.name)

    def _bin(self, key: bytes) -> int:
        bins = self.num_bins - 1 if self.mask_value is not None and self.num_bins > 1 else self.num_bins
        if self.salt is not None:
            return hashing.siphash(key, (self.salt[0], self.salt[1])) % bins
        return hashing.fingerprint64(key) % bins

    def _bins(self, array: np.ndarray) -> np.ndarray:
        values = array.ravel().tolist()
        mask = self.mask_value.encode() if isinstance(self.mask_value, str) else self.mask_value
        has_mask = mask is not None and self.num_bins > 1
        outcome = []
        for value in values:
            key = value if isinstance(value, bytes) else b"%d" % int(value)
            if has_mask:
                outcome.append(0 if value == mask else self._bin(key) + 1)
            else:
                outcome.append(self._bin(key))
        return np.array(outcome, np.int64).reshape(array.shape)

    def call(self, inputs: Any) -> Any:
        """The bins that inputs are hashed to, or an encoding of them, as ``output_mode`` says.

        Args:
            inputs: a tensor of texts or integers, or a ragged one.

        Returns:
            A tensor; for ``output_mode="int"`` of the same shape.

        Raises:
            ArgumentError: for ragged inputs in another mode.
        """
        mode, bins, dtype = self.output_mode, self.num_bins, self._result_dtype
        if isinstance(inputs, Ragged):
            if mode != "int":
                raise ArgumentError(self.name, "ragged inputs have the output mode 'int' alone.")
            return inputs.with_values(self.call(inputs.values))

        def run(array: np.ndarray) -> Any:
            places = self._bins(array)
            return places if mode == "int" else encoded(mode, places, bins, dtype)

        shape = encoded_shape(mode, inputs.shape, bins)
        out = step(run, [inputs], [TensorType(shape, dtype)])[0]
        return sparse_tensors.from_dense(out) if self.sparse else out

    def get_config(self) -> dict[str, Any]:
        names = "num_bins", "mask_value", "salt", "output_mode", "sparse"
        return super().get_config() | {name: getattr(self, name) for name in names} | {"dtype": self._result_dtype.name}


class HashedCrossing(Layer):
    """Hashed crossing: several features, texts or integers, as the number of the bin of their combination.

    Args:
        num_bins: the number of bins.
        output_mode: ``"int"`` or ``"one_hot"``.
        sparse: whether vectors are sparse tensors.
        **options: options of the base class.

    >>> hf.layers.HashedCrossing(5)((["A", "B"], [101, 102])).shape
    (2,)
    """

    def __init__(
        self, num_bins: int, output_mode: str = "int", sparse: bool = False, **options: Unpack[LayerOptions]
    ) -> None:
        options.pop("dtype", None)
        super().__init__(**options)
        self.output_mode = mode_of(self.name, output_mode, ("int", "one_hot"))
        self.num_bins, self.sparse = int(num_bins), bool(sparse)
        if self.num_bins < 1:
            raise ArgumentError(self.name, f"num_bins is {num_bins}. Expected at least 1.")

    def _converted(self, value: object) -> Any:
        if not isinstance(value, (list, tuple)) or any(isinstance(part, Symbol) for part in value):
            return value
        return [as_strings(p, self.name) if holds_texts(p) else as_tensor(p, self.name) for p in value]

    def call(self, inputs: Tensor) -> Any:
        """The bins that combinations of inputs are hashed to, or an encoding of them.

        Args:
            inputs: a list of tensors of texts or integers, of shapes (), (batch,) or (batch, 1).

        Returns:
            A tensor; for ``output_mode="int"`` of the same shape.

        Raises:
            ArgumentError: for fewer than two inputs, other dtypes or other shapes.
        """
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ArgumentError(
                self.name, "`HashedCrossing` should be called on a list or tuple of at least two inputs."
            )
        shape, bins, mode = inputs[0].shape, self.num_bins, self.output_mode
        for x in inputs:
            if not isinstance(x, StringTensor) and not dtypes.is_integer(x.dtype):
                raise ArgumentError(self.name, f"All inputs should have an integer or string dtype, not {x.type}.")
            if len(x.shape) > 2 or len(x.shape) != len(shape):
                raise ArgumentError(
                    self.name, "All inputs should have the shape `()`, `(batch_size)` or `(batch_size, 1)`, and equal."
                )

        def one(row: tuple[Any, ...]) -> int:
            outcome = 0xDECAFCAFFE
            for value in row:
                part = hashing.fingerprint64(value) if isinstance(value, bytes) else int(value) & (1 << 64) - 1
                outcome = hashing.combined(outcome, part)
            return outcome % bins

        def run(*arrays: np.ndarray) -> Any:
            rows = zip(*[array.ravel().tolist() for array in arrays])
            places = np.array([one(row) for row in rows], np.int64).reshape(arrays[0].shape)
            return places if mode == "int" else encoded(mode, places, bins, np.float32)

        dtype = int64 if mode == "int" else float32
        out = step(run, inputs, [TensorType(encoded_shape(mode, shape, bins), dtype)])[0]
        return sparse_tensors.from_dense(out) if self.sparse else out

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {name: getattr(self, name) for name in ("num_bins", "output_mode", "sparse")}
