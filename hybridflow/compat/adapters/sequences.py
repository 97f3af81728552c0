"""``tf.keras.preprocessing.sequence``: pairs of words from sentences, for embeddings of words.  All is NumPy's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compat.export import tf_export
from hybridflow.errors import ArgumentError

_EULER = 0.577  # of the harmonic numbers, to the digits that Keras takes


@tf_export("keras.preprocessing.sequence.make_sampling_table", "keras.utils.make_sampling_table")
def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """``tf.keras.preprocessing.sequence.make_sampling_table``: for each rank of a word the probability to keep it, if
    words are as frequent as Zipf's law says."""
    rank = np.arange(size, dtype=np.float64)
    rank[:1] = 1
    factor = sampling_factor * (rank * (np.log(rank) + _EULER) + 0.5 - 1 / (12 * rank))
    kept: np.ndarray = np.minimum(1.0, factor / np.sqrt(factor))
    return kept


@tf_export("keras.preprocessing.sequence.skipgrams", "keras.utils.skipgrams")
def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """``tf.keras.preprocessing.sequence.skipgrams``: pairs of a word and one near it, labelled 1, and then pairs of a
    word and a random one, labelled 0.  The word 0 stands for none."""
    if negative_samples > 0 and vocabulary_size < 2:
        raise ArgumentError("skipgrams", f"vocabulary_size is {vocabulary_size}; random words need at least 2.")
    draw = random.Random(seed)
    near, far = ([0, 1], [1, 0]) if categorical else (1, 0)
    pairs = []
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < draw.random()):
            continue
        window = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        pairs += [[word, sequence[j]] for j in window if j != i and sequence[j]]
    labels: list[Any] = [near] * len(pairs)
    words = [word for word, _ in pairs]
    draw.shuffle(words)
    for k in range(int(len(pairs) * negative_samples)):
        pairs.append([words[k % len(words)], draw.randint(1, vocabulary_size - 1)])
        labels.append(far)
    if shuffle:
        order = draw.sample(range(len(pairs)), len(pairs))
        pairs, labels = [pairs[k] for k in order], [labels[k] for k in order]
    return pairs, labels
