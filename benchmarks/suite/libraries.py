"""What each side calls things.  A program names what NumPy has as NumPy does; a library looks up in its own module what
its class does not have.

What a library has no counterpart of raises NotOffered, and its side takes no part in that program.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.case import Filter

Program = Callable[..., Any]
RATE = 1e-3  # of each step of gradient descent


class NotOffered(Exception):
    """The library has no such thing."""


class Library:
    """A side: how arguments get there, programs are compiled, and what has other names than NumPy's."""

    module = ""

    def __init__(self, threads: int) -> None:
        self.own = importlib.import_module(self.module)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.own, name)
        except AttributeError:
            raise NotOffered(f"{type(self).__name__}: {name}") from None

    def array(self, x: np.ndarray | Filter) -> Any:
        """An argument of a program."""
        raise NotImplementedError

    def numpy(self, x: Any) -> np.ndarray:
        """A result, bfloat16 as float32."""
        return np.asarray(x)

    def compiled(self, program: Program) -> Program:
        """A callable that returns when the results are there."""
        return program

    def gradient(self, loss: Program) -> Program:
        """The loss and its gradients with respect to all arguments of floats, in a list."""
        raise NotOffered("gradient")

    def trained(self, loss: Program, variables: list[Any]) -> Program:
        """A callable of the other arguments: a step of gradient descent on the variables, which returns the loss."""
        raise NotOffered("trained")

    def settle(self) -> None:
        """Wait until calls are as fast as they will be."""

    def temporary(self, program: Any, given: list[Any]) -> int | None:
        """Peak bytes of memory that the compiled program needs besides arguments and results, where known."""
        return None

    def operations(self, program: Any, given: list[Any]) -> int | None:
        """Operations on numbers that the compiled program does, where known."""
        return None

    def repeated(self, count: int, body: Program, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """``state = body(*state)`` that many times."""
        for _ in range(count):
            state = body(*state)
        return state

    def last(self, body: Program, rows: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The last ``state = body(state, row)`` along the first axis."""
        for k in range(rows.shape[0]):
            state = body(state, rows[k])
        return state

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        """Written out, [batch, heads, places, width]."""
        scores = self.matmul(q, self.transposed(k, (0, 1, 3, 2))) * (1 / float(np.sqrt(q.shape[-1])))
        if causal:
            places = self.arange(q.shape[2])
            scores = self.where(places[:, None] >= places[None], scores, -1e9)
        return self.matmul(self.softmax(scores), v)

    def dense(self, x: Any) -> Any:
        """The array laid out in the order of its axes, for libraries whose views are results."""
        return x


class HybridFlow(Library):
    module = "hybridflow"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        nn = self.own.nn
        self.softmax, self.log_softmax, self.relu, self.erf = nn.softmax, nn.log_softmax, nn.relu, self.own.erf
        self.layer_norm, self.rms_norm, self.softplus = nn.layer_norm, nn.rms_norm, nn.softplus
        self.cumsum, self.transposed, self.cast = self.own.cumulative_sum, self.own.permute_dims, self.own.astype
        self.solve, self.det = self.own.linalg.solve, self.own.linalg.det
        self.inv, self.cholesky = self.own.linalg.inv, self.own.linalg.cholesky

    def array(self, x: Any) -> Any:
        return self.own.asarray(x.values if isinstance(x, Filter) else x)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(self.own.astype(x, "float32") if x.dtype == self.own.bfloat16 else x)

    def compiled(self, program: Program) -> Program:
        return self.own.function(program)

    def gradient(self, loss: Program) -> Program:
        def run(*given: Any) -> Any:
            sources = [x for x in given if x.dtype.kind == "f"]
            with self.own.GradientTape() as tape:
                for x in sources:
                    tape.watch(x)
                value = loss(*given)
            return [value, *tape.gradient(value, sources)]

        return run

    def trained(self, loss: Program, variables: list[Any]) -> Program:
        own = [self.own.Variable(x) for x in variables]
        optimizer = self.own.optimizers.SGD(RATE)

        def step(*given: Any) -> Any:
            with self.own.GradientTape() as tape:
                value = loss(*own, *given)
            optimizer.apply(tape.gradient(value, own), own)
            return value

        return self.compiled(step)

    def settle(self) -> None:
        from hybridflow.runtime import background

        background.wait()

    def temporary(self, program: Any, given: list[Any]) -> int | None:
        arenas = [row["bytes"] for row in program.memory_plan(*given) if row["kind"] == "arena"]
        return None if not arenas or None in arenas else sum(arenas)

    def operations(self, program: Any, given: list[Any]) -> int | None:
        counts = [row["flops"] for row in program.kernels(*given)]
        return sum(counts) if all(isinstance(count, int) for count in counts) else None

    def repeated(self, count: int, body: Program, state: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.own.while_loop(lambda k, *s: k < count, lambda k, *s: (k + 1, *body(*s)), (0, *state))
        return tuple(found[1:])

    def last(self, body: Program, rows: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part[-1] for part in self.own.scan(body, rows, state))

    def matmul(self, x: Any, y: Any) -> Any:
        return self.own.matmul(x, y, sum_dtype=self.own.int32 if x.dtype == self.own.int8 else None)

    def gelu(self, x: Any) -> Any:
        return self.own.nn.gelu(x, approximate=True)

    def added(self, x: Any, indices: Any, rows: Any) -> Any:
        return self.own.scatter_add(x, indices, rows)

    def counts(self, x: Any, bins: int) -> Any:
        return self.own.scatter_add(self.own.zeros(bins, self.own.int64), x, 1)

    def top(self, x: Any, k: int) -> Any:
        return list(self.own.top_k(x, k))

    def stable_order(self, x: Any, axis: int) -> Any:
        return self.own.argsort(x, axis=axis)

    def statistics(self, x: Any) -> Any:
        return list(self.own.nn.moments(x, 0))

    def batch_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = self.own.nn.moments(x, 0)
        return (x - mean) / self.own.sqrt(variance + 1e-5) * scale + offset

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return -self.own.mean(self.own.take_along_axis(self.log_softmax(logits), labels[:, None], axis=1))

    def convolved(self, x: Any, f: Any, step: int = 1) -> Any:
        half = [[f.shape[0] // 2] * 2] * (f.ndim - 2)
        return self.own.nn.convolution(x, f, step, "SAME" if step == 1 else [[0, 0], *half, [0, 0]])

    def pooled(self, x: Any) -> Any:
        return self.own.nn.max_pool2d(x, 2, 2, "VALID")

    def averaged(self, x: Any) -> Any:
        return self.own.nn.avg_pool2d(x, 2, 2, "VALID")


class Eager(HybridFlow):
    """Hybridflow without compiling."""

    def dense(self, x: Any) -> Any:
        raise NotOffered("eager views stay views, and so do copies of tensors, which cannot change")

    def compiled(self, program: Program) -> Program:
        return program

    def temporary(self, program: Any, given: list[Any]) -> int | None:
        return None

    operations = temporary


class NumPy(Library):
    module = "numpy"
    transposed, solve = staticmethod(np.transpose), staticmethod(np.linalg.solve)
    det, inv, cholesky = map(staticmethod, (np.linalg.det, np.linalg.inv, np.linalg.cholesky))
    concat = staticmethod(np.concatenate)

    def array(self, x: Any) -> Any:
        return x.values if isinstance(x, Filter) else x

    def numpy(self, x: Any) -> np.ndarray:
        return x.astype(np.float32) if getattr(x.dtype, "name", "") == "bfloat16" else np.asarray(x)

    def dense(self, x: Any) -> Any:
        return x.copy()

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def matmul(self, x: Any, y: Any) -> Any:
        if x.dtype == np.int8:
            return x.astype(np.int32) @ y.astype(np.int32)
        if x.dtype.name in ("bfloat16", "float16"):
            return (x.astype(np.float32) @ y.astype(np.float32)).astype(x.dtype)
        return x @ y

    def einsum(self, equation: str, *given: Any) -> Any:
        return np.einsum(equation, *given, optimize=True)

    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0)

    def softmax(self, x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def log_softmax(self, x: Any) -> Any:
        x = x - x.max(-1, keepdims=True)
        return x - np.log(np.exp(x).sum(-1, keepdims=True))

    def gelu(self, x: Any) -> Any:
        return np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))

    def layer_norm(self, x: Any, scale: Any = 1, offset: Any = 0) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * scale + offset

    def added(self, x: Any, indices: Any, rows: Any) -> Any:
        x = x.copy()
        np.add.at(x, indices, rows)
        return x

    def counts(self, x: Any, bins: int) -> Any:
        return np.bincount(x, minlength=bins)

    def stable_order(self, x: Any, axis: int) -> Any:
        return np.argsort(x, axis=axis, kind="stable")

    def statistics(self, x: Any) -> Any:
        return [x.mean(0), x.var(0)]

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return -np.take_along_axis(self.log_softmax(logits), labels[:, None], axis=1).mean()


class Jax(Library):
    """JAX's jit."""

    module = "jax.numpy"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import jax

        jax.config.update("jax_enable_x64", True)  # or float64 and int64 would be cut down
        self.jax = jax
        self.softmax, self.log_softmax, self.relu = jax.nn.softmax, jax.nn.log_softmax, jax.nn.relu
        self.softplus, self.erf, self.sigmoid = jax.nn.softplus, jax.scipy.special.erf, jax.nn.sigmoid
        self.transposed, self.logsumexp = self.own.transpose, jax.scipy.special.logsumexp
        self.solve, self.det = self.own.linalg.solve, self.own.linalg.det
        self.inv, self.cholesky = self.own.linalg.inv, self.own.linalg.cholesky

    def array(self, x: Any) -> Any:
        return self.own.asarray(x.values if isinstance(x, Filter) else x)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x.astype("float32") if x.dtype == self.own.bfloat16 else x)

    def compiled(self, program: Program) -> Program:
        made = self.jax.jit(program)

        def run(*given: Any) -> Any:
            return self.jax.block_until_ready(made(*given))

        run.made = made  # type: ignore[attr-defined]
        return run

    def gradient(self, loss: Program) -> Program:
        def run(*given: Any) -> Any:
            places = tuple(k for k, x in enumerate(given) if x.dtype.kind == "f")
            value, found = self.jax.value_and_grad(loss, places)(*given)
            return [value, *found]

        return run

    def trained(self, loss: Program, variables: list[Any]) -> Program:
        own = [self.own.array(x) for x in variables]  # copies: they are given away to each step

        def step(own: Any, *given: Any) -> Any:
            value, found = self.jax.value_and_grad(lambda own: loss(*own, *given))(own)
            return value, [x - RATE * g for x, g in zip(own, found, strict=True)]

        made = self.jax.jit(step, donate_argnums=0)

        def run(*given: Any) -> Any:
            value, own[:] = made(own, *given)
            self.jax.block_until_ready(own)
            return value

        run.lowered = lambda *given: made.lower(own, *given)  # type: ignore[attr-defined]
        return run

    def temporary(self, program: Any, given: list[Any]) -> int | None:
        lowered = program.lowered(*given) if hasattr(program, "lowered") else program.made.lower(*given)
        return int(lowered.compile().memory_analysis().temp_size_in_bytes)

    def repeated(self, count: int, body: Program, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.jax.lax.fori_loop(0, count, lambda _, s: body(*s), state)

    def last(self, body: Program, rows: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.jax.lax.scan(lambda s, row: (body(s, row), None), state, rows)[0]

    def matmul(self, x: Any, y: Any) -> Any:
        return self.own.matmul(x, y, preferred_element_type=self.own.int32 if x.dtype == self.own.int8 else None)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        return self.own.take(x, indices, axis=axis, mode="clip")

    def layer_norm(self, x: Any, scale: Any = 1.0, offset: Any = 0.0) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * self.jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + offset

    def rms_norm(self, x: Any, scale: Any) -> Any:
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)

    def added(self, x: Any, indices: Any, rows: Any) -> Any:
        return x.at[indices].add(rows)

    def counts(self, x: Any, bins: int) -> Any:
        return self.own.bincount(x, length=bins)

    def top(self, x: Any, k: int) -> Any:
        return list(self.jax.lax.top_k(x, k))

    def stable_order(self, x: Any, axis: int) -> Any:
        return self.own.argsort(x, axis=axis)

    def statistics(self, x: Any) -> Any:
        return [x.mean(0), x.var(0)]

    def batch_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        return (x - x.mean(0)) / self.own.sqrt(x.var(0) + 1e-5) * scale + offset

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return -self.own.mean(self.own.take_along_axis(self.log_softmax(logits), labels[:, None], axis=1))

    def convolved(self, x: Any, f: Any, step: int = 1) -> Any:
        axes = f.ndim - 2
        formats = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}[axes]
        groups = x.shape[-1] // f.shape[-2]
        half = [(f.shape[0] // 2,) * 2] * axes  # SAME, but for larger steps
        return self.jax.lax.conv_general_dilated(
            x, f, (step,) * axes, half, dimension_numbers=formats, feature_group_count=groups
        )

    def pooled(self, x: Any) -> Any:
        window = (1, 2, 2, 1)
        return self.jax.lax.reduce_window(x, -self.own.inf, self.jax.lax.max, window, window, "VALID")

    def averaged(self, x: Any) -> Any:
        window = (1, 2, 2, 1)
        return self.jax.lax.reduce_window(x, 0.0, self.jax.lax.add, window, window, "VALID") / 4


class Torch(Library):
    """PyTorch without compiling."""

    module = "torch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.own.set_num_threads(threads)
        self.functional = self.own.nn.functional
        self.relu, self.softplus = self.own.relu, self.functional.softplus
        self.concat, self.transposed, self.searchsorted = self.own.cat, self.own.permute, self.own.searchsorted
        self.solve, self.det = self.own.linalg.solve, self.own.linalg.det
        self.inv, self.cholesky = self.own.linalg.inv, self.own.linalg.cholesky

    def array(self, x: Any) -> Any:
        if isinstance(x, Filter):
            axes = x.values.ndim - 2
            turned = self.own.from_numpy(x.values).permute(axes + 1, axes, *range(axes))
            return turned.contiguous(memory_format=self.own.channels_last) if axes == 2 else turned.contiguous()
        if x.dtype.name == "bfloat16":
            return self.own.from_numpy(x.astype(np.float32)).to(self.own.bfloat16)
        return self.own.from_numpy(x)

    def numpy(self, x: Any) -> np.ndarray:
        x = x.detach()
        return np.asarray(x.float() if x.dtype == self.own.bfloat16 else x)

    def compiled(self, program: Program) -> Program:
        def run(*given: Any) -> Any:
            with self.own.no_grad():
                return program(*given)

        return run

    def gradient(self, loss: Program) -> Program:
        def run(*given: Any) -> Any:
            with self.own.enable_grad():
                held = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
                value = loss(*held)
                found = self.own.autograd.grad(value, [x for x in held if x.requires_grad])
            return [value.detach(), *found]

        return run

    def trained(self, loss: Program, variables: list[Any]) -> Program:
        own = [x.clone().requires_grad_() for x in variables]
        optimizer = self.own.optim.SGD(own, RATE)
        prepared = self._prepared(loss)

        def step(*given: Any) -> Any:
            optimizer.zero_grad()
            value = prepared(*own, *given)
            value.backward()
            optimizer.step()
            return value.detach()

        return step

    def _prepared(self, program: Program) -> Program:
        return program

    def dense(self, x: Any) -> Any:
        return x.contiguous()

    def cast(self, x: Any, dtype: str) -> Any:
        return x.to(getattr(self.own, dtype))

    def matmul(self, x: Any, y: Any) -> Any:
        return self.own._int_mm(x, y) if x.dtype == self.own.int8 else self.own.matmul(x, y)

    def astype(self, x: Any, dtype: str) -> Any:
        return self.cast(x, dtype)

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        if axis == 0 and x.requires_grad:
            return self.functional.embedding(indices, x, sparse=True)
        wide = indices if indices.dtype in (self.own.int32, self.own.int64) else indices.long()  # bytes are masks
        return self.own.index_select(x, axis, wide)

    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any:
        return self.own.gather(x, axis, indices)

    def sum(self, x: Any, axis: Any = None) -> Any:
        return self.own.sum(x) if axis is None else self.own.sum(x, axis)

    def max(self, x: Any, axis: int) -> Any:
        return self.own.amax(x, axis)

    def min(self, x: Any, axis: int) -> Any:
        return self.own.amin(x, axis)

    def cumsum(self, x: Any, axis: int) -> Any:
        return self.own.cumsum(x, axis)

    def minimum(self, x: Any, y: Any) -> Any:
        return self.own.minimum(x, y) if isinstance(y, self.own.Tensor) else self.own.clamp(x, max=y)

    def maximum(self, x: Any, y: Any) -> Any:
        return self.own.maximum(x, y) if isinstance(y, self.own.Tensor) else self.own.clamp(x, min=y)

    def softmax(self, x: Any) -> Any:
        return self.own.softmax(x, -1)

    def log_softmax(self, x: Any) -> Any:
        return self.own.log_softmax(x, -1)

    def logsumexp(self, x: Any, axis: int) -> Any:
        return self.own.logsumexp(x, axis)

    def layer_norm(self, x: Any, scale: Any = None, offset: Any = None) -> Any:
        return self.functional.layer_norm(x, x.shape[-1:], scale, offset)

    def rms_norm(self, x: Any, scale: Any) -> Any:
        return self.functional.rms_norm(x, x.shape[-1:], scale, 1e-6)

    def batch_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        return self.functional.batch_norm(x, None, None, scale, offset, training=True)

    def gelu(self, x: Any) -> Any:
        return self.functional.gelu(x, approximate="tanh")

    def flip(self, x: Any, axis: int) -> Any:
        return self.own.flip(x, (axis,))

    def pad(self, x: Any, widths: Any) -> Any:
        return self.functional.pad(x, [n for pair in reversed(widths) for n in pair])

    def roll(self, x: Any, shift: int, axis: int) -> Any:
        return self.own.roll(x, shift, axis)

    def repeat(self, x: Any, count: int, axis: int) -> Any:
        return self.own.repeat_interleave(x, count, axis)

    def sort(self, x: Any, axis: int = -1) -> Any:
        return self.own.sort(x, axis)[0]

    def stable_order(self, x: Any, axis: int) -> Any:
        return self.own.argsort(x, dim=axis, stable=True)

    def top(self, x: Any, k: int) -> Any:
        return list(self.own.topk(x, k))

    def argmax(self, x: Any, axis: int) -> Any:
        return self.own.argmax(x, axis)

    def added(self, x: Any, indices: Any, rows: Any) -> Any:
        return x.index_add(0, indices, rows)

    def counts(self, x: Any, bins: int) -> Any:
        return self.own.bincount(x, minlength=bins)

    def statistics(self, x: Any) -> Any:
        return list(self.own.var_mean(x, 0, correction=0))[::-1]

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.functional.cross_entropy(logits, labels)

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        return self.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def convolved(self, x: Any, f: Any, step: int = 1) -> Any:
        axes = f.ndim - 2
        convolve = self.functional.conv2d if axes == 2 else self.functional.conv1d
        images = x.permute(0, axes + 1, *range(1, axes + 1))
        found = convolve(images, f, stride=step, padding=f.shape[2] // 2, groups=x.shape[-1] // f.shape[1])
        return found.permute(0, *range(2, axes + 2), 1)

    def pooled(self, x: Any) -> Any:
        return self.functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def averaged(self, x: Any) -> Any:
        return self.functional.avg_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


class TorchCompile(Torch):
    """PyTorch's compiler, which needs a C++ compiler."""

    def compiled(self, program: Program) -> Program:
        return super().compiled(self._prepared(program))

    def _prepared(self, program: Program) -> Program:
        return self.own.compile(program, dynamic=False)


class TensorFlow(Library):
    """tf.function."""

    module = "tensorflow"
    with_xla = False

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.tf = tf = self.own
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.softmax, self.log_softmax, self.relu = tf.nn.softmax, tf.nn.log_softmax, tf.nn.relu
        self.softplus, self.erf, self.sigmoid = tf.nn.softplus, tf.math.erf, tf.sigmoid
        self.sum, self.mean, self.max, self.any = tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_any
        self.transposed, self.log, self.logsumexp = tf.transpose, tf.math.log, tf.reduce_logsumexp
        self.log1p = tf.math.log1p
        self.cumsum, self.floor, self.arange = tf.cumsum, tf.floor, tf.range
        self.sort, self.statistics = tf.sort, lambda x: list(tf.nn.moments(x, 0))

    def array(self, x: Any) -> Any:
        return self.tf.constant(x.values if isinstance(x, Filter) else x)

    def numpy(self, x: Any) -> np.ndarray:
        return self.tf.cast(x, "float32").numpy() if x.dtype == self.tf.bfloat16 else x.numpy()

    def compiled(self, program: Program) -> Program:
        return self.tf.function(program, jit_compile=self.with_xla)

    def gradient(self, loss: Program) -> Program:
        def run(*given: Any) -> Any:
            sources = [x for x in given if x.dtype.is_floating]
            with self.tf.GradientTape() as tape:
                tape.watch(sources)
                value = loss(*given)
            return [value, *map(self.tf.convert_to_tensor, tape.gradient(value, sources))]

        return run

    def trained(self, loss: Program, variables: list[Any]) -> Program:
        own = [self.tf.Variable(x) for x in variables]

        def step(*given: Any) -> Any:
            with self.tf.GradientTape() as tape:
                value = loss(*own, *given)
            for x, g in zip(own, tape.gradient(value, own), strict=True):
                if isinstance(g, self.tf.IndexedSlices):
                    x.scatter_sub(self.tf.IndexedSlices(RATE * g.values, g.indices))
                else:
                    x.assign_sub(RATE * g)
            return value

        return self.compiled(step)

    def repeated(self, count: int, body: Program, state: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.tf.while_loop(lambda k, *s: k < count, lambda k, *s: (k + 1, *body(*s)), (0, *state))
        return tuple(found[1:])

    def last(self, body: Program, rows: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part[-1] for part in self.tf.scan(body, rows, state))

    def matmul(self, x: Any, y: Any) -> Any:
        if len(y.shape) == 1:
            return self.tf.linalg.matvec(x, y)
        if len(x.shape) == 1:
            return self.tf.linalg.matvec(y, x, transpose_a=True)
        return self.tf.matmul(x, y, output_type="int32" if x.dtype == self.tf.int8 else None)

    def cast(self, x: Any, dtype: str) -> Any:
        return self.tf.cast(x, dtype)

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        return self.tf.gather(x, indices, axis=axis)

    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any:
        return self.tf.gather(x, indices, axis=axis, batch_dims=axis)

    def layer_norm(self, x: Any, scale: Any = 1.0, offset: Any = 0.0) -> Any:
        mean, variance = self.tf.nn.moments(x, -1, keepdims=True)
        return (x - mean) * self.tf.math.rsqrt(variance + 1e-5) * scale + offset

    def rms_norm(self, x: Any, scale: Any) -> Any:
        return x * self.tf.math.rsqrt(self.tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * scale

    def batch_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = self.tf.nn.moments(x, 0)
        return (x - mean) * self.tf.math.rsqrt(variance + 1e-5) * scale + offset

    def gelu(self, x: Any) -> Any:
        return self.tf.nn.gelu(x, approximate=True)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.tf.clip_by_value(x, low, high)

    def flip(self, x: Any, axis: int) -> Any:
        return self.tf.reverse(x, [axis])

    def stack(self, parts: Any, axis: int = 0) -> Any:
        return self.tf.stack(parts, axis)

    def top(self, x: Any, k: int) -> Any:
        return list(self.tf.math.top_k(x, k))

    def stable_order(self, x: Any, axis: int) -> Any:
        return self.tf.argsort(x, axis=axis, stable=True)

    def added(self, x: Any, indices: Any, rows: Any) -> Any:
        return self.tf.tensor_scatter_nd_add(x, indices[:, None], rows)

    def counts(self, x: Any, bins: int) -> Any:
        return self.tf.math.bincount(x, minlength=bins, maxlength=bins)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    def convolved(self, x: Any, f: Any, step: int = 1) -> Any:
        if step != 1:
            half = [f.shape[0] // 2] * 2
            x = self.tf.pad(x, [[0, 0], *[half] * (len(f.shape) - 2), [0, 0]])
        return self.tf.nn.convolution(x, f, step, "SAME" if step == 1 else "VALID")

    def pooled(self, x: Any) -> Any:
        return self.tf.nn.max_pool2d(x, 2, 2, "VALID")

    def averaged(self, x: Any) -> Any:
        return self.tf.nn.avg_pool2d(x, 2, 2, "VALID")


class TensorFlowXla(TensorFlow):
    """tf.function(jit_compile=True)."""

    with_xla = True


OURS, OUR_EAGER = "hybridflow", "eager"
SIDES: dict[str, type[Library]] = {
    OURS: HybridFlow,
    OUR_EAGER: Eager,
    "numpy": NumPy,
    "jax": Jax,
    "torch": Torch,
    "torch-compile": TorchCompile,
    "tf": TensorFlow,
    "tf-xla": TensorFlowXla,
}
