"""Learn what words mean from the words around them: skip-grams with negative sampling, and sparse gradients.

    python examples/word2vec.py [--steps N] [--checkpoint DIR] [--words WORD ...]

It reads the texts of Python's own ``help()``, which are on every machine that has Python.  The gradient of a look-up
stays the rows that were looked up, so a step takes the time of its batch, however many words there are.  With a folder
the run is saved now and then, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import hybridflow as hf

SEED = 11
BATCH = 256
WINDOW = 4  # words to each side
NEGATIVES = 8  # words drawn at random for each pair
EVERY = 500  # steps between two lines of progress, and between two checkpoints


class Corpus:
    """A text as numbers of words; rare words are left out, and most occurrences of frequent ones."""

    def __init__(self, text: str, least: int = 8) -> None:
        words = re.findall(r"[a-z]+", text.lower())
        counts = {word: count for word, count in Counter(words).most_common() if count >= least}
        self.words = list(counts)
        self.number = {word: number for number, word in enumerate(self.words)}
        frequencies = np.array(list(counts.values()), np.float64)
        # As often as the power 3/4 of how often they occur: pairs that do not belong together are drawn from these.
        self.log_noise = np.log(frequencies**0.75).astype(np.float32)
        kept = np.minimum(1, np.sqrt(1e-3 * frequencies.sum() / frequencies))
        tokens = np.array([self.number[word] for word in words if word in counts])
        self.tokens = tokens[np.random.default_rng(SEED).random(len(tokens)) < kept[tokens]]

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Each word with each one around it: int64[pairs] twice."""
        distances = [d for d in range(-WINDOW, WINDOW + 1) if d]
        inner = np.arange(WINDOW, len(self.tokens) - WINDOW)
        return np.repeat(self.tokens[inner], len(distances)), self.tokens[inner[:, None] + distances].ravel()


class Word2Vec:
    """Two tables of vectors, for words in the middle and words around them, and the run that trains them."""

    def __init__(self, corpus: Corpus, width: int = 64, folder: Path | None = None) -> None:
        self.corpus = corpus
        self.random = hf.random.Generator(SEED)
        shape = len(corpus.words), width
        self.middle = hf.Variable(self.random.uniform(shape, -0.5 / width, 0.5 / width), name="middle")
        self.around = hf.Variable(hf.zeros(shape), name="around")
        self.optimizer = hf.optimizers.Adagrad(0.2, initial_accumulator_value=0.1)
        pairs = hf.data.Dataset.from_tensor_slices(corpus.pairs())
        shuffled = pairs.shuffle(100_000, seed=SEED).repeat().batch(BATCH, drop_remainder=True)
        self.batches = iter(shuffled.prefetch(hf.data.AUTOTUNE))
        self.manager = None
        if folder is not None:
            checkpoint = hf.checkpoint.Checkpoint(
                middle=self.middle, around=self.around, optimizer=self.optimizer, random=self.random, data=self.batches
            )
            self.manager = hf.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2)
            self.manager.restore_or_initialize()

    @hf.function
    def step(self, words: hf.Tensor, contexts: hf.Tensor) -> hf.Tensor:
        """Make pairs of the text likely, and those with words drawn at random unlikely; the loss of a pair."""
        drawn = self.random.categorical(self.corpus.log_noise, (BATCH, NEGATIVES))
        with hf.GradientTape() as tape:
            vectors = hf.take(self.middle, words, axis=0)
            real = hf.vecdot(vectors, hf.take(self.around, contexts, axis=0))
            false = hf.vecdot(vectors[:, None], hf.take(self.around, drawn, axis=0))
            loss = -hf.sum(hf.nn.log_sigmoid(real)) - hf.sum(hf.nn.log_sigmoid(-false))
        tables = self.middle, self.around
        self.optimizer.apply_gradients(zip(tape.gradient(loss, tables), tables))
        return loss / BATCH

    def train(self, steps: int) -> list[float]:
        """Go on until that many steps are done in all; the losses of those that were done now."""
        losses: list[float] = []
        started = time.perf_counter()
        for done in range(self.optimizer.iterations.item() + 1, steps + 1):
            losses.append(self.step(*next(self.batches)).item())
            if done % EVERY == 0 or done == steps:
                spent = (time.perf_counter() - started) / len(losses)
                print(f"step {done:6}  loss {np.mean(losses[-EVERY:]):.3f}  {spent * 1e3:.2f} ms a step")
                if self.manager is not None:
                    self.manager.save()
        return losses

    def nearest(self, word: str, count: int = 6) -> list[str]:
        """The words whose vectors point most nearly in the direction of another's."""
        directions = hf.nn.l2_normalize(self.middle, axis=1)
        _, found = hf.top_k(directions @ directions[self.corpus.number[word]], count + 1)
        return [self.corpus.words[number] for number in found.tolist()[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5000, help="steps of training in all (5000)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    words = ["list", "class", "float", "method", "exception", "if"]
    parser.add_argument("--words", nargs="+", default=words, help="words whose neighbours are printed")
    options = parser.parse_args()
    model = Word2Vec(Corpus("\n".join(topics[name] for name in sorted(topics))), folder=options.checkpoint)
    print(f"{len(model.corpus.tokens)} words of a text, {len(model.corpus.words)} different ones")
    model.train(options.steps)
    for word in options.words:
        print(f"{word:>12}: {', '.join(model.nearest(word)) if word in model.corpus.number else 'not in the text'}")


if __name__ == "__main__":
    main()
