"""Learn to balance a pole on a cart by trying: deep Q-learning with replay and a target network.

    python examples/dqn_cart_pole.py [--steps N] [--checkpoint DIR]

The cart is pushed to the left or to the right, 50 times a second; it gets 1 for each step until the pole has fallen
over, the cart has left the track, or 500 steps are done.  30 000 steps lead to a mean
return of 500.  With a folder the run is saved now and then, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np

import hybridflow as hf
from hybridflow import layers

SEED = 17
BATCH = 128
DISCOUNT = 0.99
HELD = 30_000  # steps to learn from, of however many there are in all
EVERY = 1000  # steps between two lines of progress, and between two checkpoints


class CartPole(hf.Module):
    """A pole on a cart: position, velocity, angle and angular velocity, in SI units."""

    GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    LONGEST = 500

    def __init__(self) -> None:
        self.state = hf.Variable(hf.zeros((4,)), trainable=False)
        self.steps = hf.Variable(0, trainable=False)

    def start(self, random: hf.random.Generator) -> None:
        self.state.assign(random.uniform((4,), -0.05, 0.05))
        self.steps.assign(0)

    def step(self, action: int) -> bool:
        """Push to the left (0) or to the right (1); whether it has failed."""
        x, velocity, angle, turning = self.state.tolist()
        force = self.FORCE if action else -self.FORCE
        mass = self.CART + self.POLE
        pushed = (force + self.POLE * self.HALF * turning**2 * math.sin(angle)) / mass
        torque = self.GRAVITY * math.sin(angle) - math.cos(angle) * pushed
        faster = torque / (self.HALF * (4 / 3 - self.POLE * math.cos(angle) ** 2 / mass))
        acceleration = pushed - self.POLE * self.HALF * faster * math.cos(angle) / mass
        x, angle = x + self.SECONDS * velocity, angle + self.SECONDS * turning
        velocity, turning = velocity + self.SECONDS * acceleration, turning + self.SECONDS * faster
        self.state.assign([x, velocity, angle, turning])
        self.steps.assign_add(1)
        return abs(x) > 2.4 or abs(angle) > math.radians(12)


class Replay(hf.Module):
    """The last ``size`` steps: states, actions, the states after them, and whether they failed."""

    def __init__(self, size: int) -> None:
        self.count = hf.Variable(0, trainable=False)
        self.before = hf.Variable(hf.zeros((size, 4)), trainable=False)
        self.actions = hf.Variable(hf.zeros((size,), hf.int64), trainable=False)
        self.after = hf.Variable(hf.zeros((size, 4)), trainable=False)
        self.failed = hf.Variable(hf.zeros((size,)), trainable=False)

    def add(self, before: hf.Tensor, action: hf.Tensor, after: hf.Tensor, failed: hf.Tensor) -> None:
        at = self.count % self.before.shape[0]
        self.before[at], self.actions[at], self.after[at], self.failed[at] = before, action, after, failed
        self.count.assign_add(1)

    def some(self, random: hf.random.Generator) -> list[hf.Tensor]:
        count = hf.minimum(self.count, self.before.shape[0])
        drawn = hf.astype(random.uniform((BATCH,)) * hf.astype(count, hf.float32), hf.int64)
        return [hf.take(v, drawn, axis=0) for v in (self.before, self.actions, self.after, self.failed)]


def network() -> hf.Sequential:
    """What each of the two actions is worth in a state."""
    return hf.Sequential([hf.Input((4,)), layers.Dense(128, "relu"), layers.Dense(128, "relu"), layers.Dense(2)])


class Agent:
    """Two networks, of which the target follows the other slowly, and where in the run it is."""

    def __init__(self, steps: int, folder: Path | None = None) -> None:
        hf.random.set_seed(SEED)
        self.random = hf.random.Generator(SEED)
        self.cart, self.replay = CartPole(), Replay(HELD)
        self.cart.start(self.random)
        self.network, self.target = network(), network()
        self.target.set_weights(self.network.get_weights())
        rate = hf.optimizers.schedules.PolynomialDecay(1e-3, steps, 1e-5)
        self.optimizer = hf.optimizers.Adam(rate, global_clipnorm=10.0)
        self.steps = steps
        self.manager = None
        if folder is not None:
            checkpoint = hf.checkpoint.Checkpoint(
                cart=self.cart,
                replay=self.replay,
                network=self.network,
                target=self.target,
                optimizer=self.optimizer,
                random=self.random,
            )
            self.manager = hf.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2)
            self.manager.restore_or_initialize()

    @hf.function
    def best(self, state: hf.Tensor) -> hf.Tensor:
        return hf.argmax(self.network(state[None])[0])

    @hf.function
    def tried(self, state: hf.Tensor) -> hf.Tensor:
        """The best action, or, more often at first, any."""
        share = hf.maximum(1 - self.replay.count / 5000, 0.05)
        any_action = self.random.randint((), 0, 2)
        return hf.where(self.random.uniform() < share, any_action, self.best(state))

    @hf.function
    def learn(self, before: hf.Tensor, action: hf.Tensor, after: hf.Tensor, failed: hf.Tensor) -> hf.Tensor:
        """Remember a step, and learn from some that are remembered; the loss."""
        self.replay.add(before, action, after, failed)
        before, action, after, failed = self.replay.some(self.random)
        chosen = hf.argmax(self.network(after), axis=-1)
        later = hf.take_along_axis(self.target(after), chosen[:, None], axis=1)[:, 0]
        wanted = 1 + DISCOUNT * (1 - failed) * later
        with hf.GradientTape() as tape:
            worth = hf.take_along_axis(self.network(before), action[:, None], axis=1)[:, 0]
            loss = hf.losses.huber(wanted, worth)
        weights = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        for slow, weight in zip(self.target.variables, self.network.variables):
            slow.assign_add(0.01 * (weight - slow))
        return hf.mean(loss)

    def train(self, until: int | None = None) -> list[float]:
        """Go on until the last step, or that many, are done; the losses of those that were done now."""
        last = self.steps if until is None else until
        losses: list[float] = []
        lengths: list[int] = []
        started = time.perf_counter()
        for done in range(self.replay.count.item() + 1, last + 1):
            before = self.cart.state.value()
            action = self.tried(before)
            failed = self.cart.step(action.item())
            losses.append(self.learn(before, action, self.cart.state.value(), hf.asarray(failed, hf.float32)).item())
            if failed or self.cart.steps.item() == self.cart.LONGEST:
                lengths.append(self.cart.steps.item())
                self.cart.start(self.random)
            if done % EVERY == 0 or done == last:
                spent = (time.perf_counter() - started) / len(losses)
                told = f"mean of the last 10 returns {np.mean(lengths[-10:]):.0f}" if lengths else "none has ended yet"
                print(f"step {done:6}  {told}  {spent * 1e3:.2f} ms a step")
                if self.manager is not None:
                    self.manager.save()
        return losses

    def returns(self, episodes: int) -> list[int]:
        """What it gets when it does what it finds best."""
        cart, random, found = CartPole(), hf.random.Generator(SEED + 1), []
        for _ in range(episodes):
            cart.start(random)
            while not cart.step(self.best(cart.state.value()).item()) and cart.steps.item() < cart.LONGEST:
                pass
            found.append(cart.steps.item())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30_000, help="steps in all (30 000)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    options = parser.parse_args()
    agent = Agent(options.steps, options.checkpoint)
    agent.train()
    print(f"mean return of 20 episodes: {np.mean(agent.returns(20)):.0f}")


if __name__ == "__main__":
    main()
