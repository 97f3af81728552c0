"""Train a small GPT on characters, and have it write.

    python examples/character_gpt.py [--steps N] [--checkpoint DIR] [--length N] [--prompt TEXT]

It learns from the texts of Python's own ``help()``, which are on every machine that has Python.  500 steps bring the
loss below 1.8.  With a folder the run is saved there now and then, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import hybridflow as hf
from hybridflow import layers

SEED = 7
BATCH = 16
EVERY = 100  # steps between two lines of progress, and between two checkpoints


@dataclass(frozen=True)
class Sizes:
    characters: int
    context: int = 64
    width: int = 128
    heads: int = 4
    blocks: int = 2


class Text:
    """A text as numbers, one for each character, of which ``alphabet`` has those that there are."""

    def __init__(self, text: str) -> None:
        self.alphabet = sorted(set(text))
        self._number = {character: number for number, character in enumerate(self.alphabet)}
        self.tokens = hf.asarray(self.encode(text))

    def encode(self, text: str) -> np.ndarray:
        return np.array([self._number[character] for character in text], np.int64)

    def decode(self, tokens: hf.Tensor) -> str:
        return "".join(self.alphabet[token] for token in tokens.tolist())


def documentation() -> Text:
    """What ``help()`` says of Python's statements and types: about half a million characters of ASCII."""
    text = "\n".join(topics[name] for name in sorted(topics))
    return Text("".join(character for character in text if character == "\n" or " " <= character <= "~"))


class Block(layers.Layer):
    """What each step sees of the steps before it, and two dense layers; both are added to what came in."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.norm_1 = layers.LayerNormalization()
        self.to_heads = layers.Dense(3 * sizes.width, use_bias=False)
        self.from_heads = layers.Dense(sizes.width)
        self.norm_2 = layers.LayerNormalization()
        self.wide = layers.Dense(4 * sizes.width, activation="gelu")
        self.narrow = layers.Dense(sizes.width)

    def call(self, x: hf.Tensor) -> hf.Tensor:
        batch, steps, width = x.shape
        parts = hf.reshape(self.to_heads(self.norm_1(x)), (batch, steps, 3, self.heads, width // self.heads))
        query, key, value = hf.permute_dims(parts, (2, 0, 3, 1, 4))
        seen = hf.nn.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.from_heads(hf.reshape(hf.permute_dims(seen, (0, 2, 1, 3)), (batch, steps, width)))
        return x + self.narrow(self.wide(self.norm_2(x)))


class GPT(layers.Layer):
    """Logits of the next character, [batch, steps, characters], for numbers of characters [batch, steps]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.characters = layers.Embedding(sizes.characters, sizes.width)
        self.places = layers.Embedding(sizes.context, sizes.width)
        self.blocks = [Block(sizes) for _ in range(sizes.blocks)]
        self.norm = layers.LayerNormalization()
        self.to_logits = layers.Dense(sizes.characters)

    def call(self, tokens: hf.Tensor) -> hf.Tensor:
        x = self.characters(tokens) + self.places(hf.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.to_logits(self.norm(x))


class Trainer:
    """The network, its optimizer, and the generator of random numbers: all that a checkpoint holds."""

    def __init__(self, text: Text, sizes: Sizes, steps: int, folder: Path | None = None) -> None:
        hf.random.set_seed(SEED)
        self.text, self.sizes, self.steps = text, sizes, steps
        self.model = GPT(self.sizes)
        self.model(hf.zeros((1, self.sizes.context), hf.int64))  # makes the weights
        rate = hf.optimizers.schedules.CosineDecay(1e-5, steps, warmup_target=2e-3, warmup_steps=min(100, steps // 10))
        self.optimizer = hf.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0)
        self.random = hf.random.Generator(SEED)
        self.manager = None
        if folder is not None:
            checkpoint = hf.checkpoint.Checkpoint(model=self.model, optimizer=self.optimizer, random=self.random)
            self.manager = hf.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2)
            self.manager.restore_or_initialize()

    @hf.function
    def step(self) -> hf.Tensor:
        """Draw pieces of the text, learn from them, and return the loss."""
        size = self.sizes.context
        starts = self.random.randint((BATCH, 1), 0, len(self.text.tokens) - size)
        pieces = hf.take(self.text.tokens, starts + hf.arange(size + 1))
        with hf.GradientTape() as tape:
            logits = self.model(pieces[:, :-1])
            loss = hf.losses.softmax_cross_entropy(pieces[:, 1:], logits)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def train(self, until: int | None = None) -> list[float]:
        """Go on until the last step, or that many, are done; the losses of those that were done now."""
        first, last = self.optimizer.iterations.item(), self.steps if until is None else until
        losses: list[float] = []
        started = time.perf_counter()
        for done in range(first + 1, last + 1):
            losses.append(self.step().item())
            if done % EVERY == 0 or done == last:
                spent = (time.perf_counter() - started) / len(losses)
                print(f"step {done:5}  loss {np.mean(losses[-EVERY:]):.3f}  {spent * 1e3:.1f} ms a step")
                if self.manager is not None:
                    self.manager.save()
        return losses

    @hf.function
    def continued(self, window: hf.Tensor, length: int) -> hf.Tensor:
        """``length`` more characters after those of ``window`` [context], drawn as the network expects them."""

        def turn(window: hf.Tensor, _: hf.Tensor) -> hf.Tensor:
            logits = self.model(window[None])[0, -1]
            drawn = self.random.categorical(logits / 0.8)
            return hf.concat([window[1:], drawn[None]])

        return hf.scan(turn, hf.arange(length), window)[:, -1]

    def write(self, prompt: str, length: int) -> str:
        tokens = self.text.encode(prompt.rjust(self.sizes.context)[-self.sizes.context :])
        return prompt + self.text.decode(self.continued(hf.asarray(tokens), length))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500, help="steps of training in all (1500)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    parser.add_argument("--length", type=int, default=400, help="characters to write in the end (400)")
    parser.add_argument("--prompt", default="The statement ", help="what it goes on from")
    options = parser.parse_args()
    text = documentation()
    trainer = Trainer(text, Sizes(len(text.alphabet)), options.steps, options.checkpoint)
    print(f"{len(text.tokens)} characters, {sum(v.size for v in trainer.model.trainable_variables)} weights")
    trainer.train()
    print(trainer.write(options.prompt, options.length))


if __name__ == "__main__":
    main()
