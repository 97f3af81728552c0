"""How models are trained, evaluated and asked for predictions: the loops, and the steps that they call."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import optimizers
from hybridflow.autodiff.tape import GradientTape
from hybridflow.callbacks.callback import Callback, History
from hybridflow.callbacks.callback_list import CallbackList
from hybridflow.core import pytree
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.distribute.strategy import get_strategy, has_strategy
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.jit.function import function
from hybridflow.layers import naming
from hybridflow.layers.layer import Layer
from hybridflow.metrics import Mean, Metric
from hybridflow.models.compile_utils import AllMetrics, CompiledLoss, CompiledMetrics
from hybridflow.models.data_adapter import Batch, Feed, at_least, check_alike, expect_rest, feed, parts, split_off
from hybridflow.models.replicated_steps import ReplicatedStep
from hybridflow.module import Module
from hybridflow.tracing.replica_axes import replica_count

if TYPE_CHECKING:
    from hybridflow.optimizers.optimizer import Optimizer

    _Base = Layer
else:
    _Base = object  # beside which ``Model`` has that class

_EMPTY = {"the data": "nothing is trained", "the validation data": "epochs are not validated"}


class Trainer(_Base):
    """What ``Model`` does with data: ``compile``, ``fit``, ``evaluate``, ``predict`` and their steps."""

    _compiled: CompileSettings | None
    _run: TrainingRun

    @property
    def layers(self) -> list[Any]:
        """For subclasses: the layers of the model."""
        raise NotImplementedError

    def _steps_anew(self) -> None:
        """Let the next step be traced anew: it may make variables then."""
        self._run.predict_step = None
        if self._compiled is not None:
            self._compiled.make_steps(self)

    @property
    def history(self) -> History | None:
        """What the last ``fit`` logged."""
        return self._run.history

    @property
    def stop_training(self) -> bool:
        """Whether ``fit`` is to end after the batch that goes on."""
        return self._run.stop_training

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        self._run.stop_training = bool(value)

    # What is trained

    def compile(
        self,
        optimizer: object = "rmsprop",
        loss: object = None,
        loss_weights: object = None,
        metrics: object = None,
        weighted_metrics: object = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: object = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Say how the model is trained.

        With the policy "mixed_float16" the optimizer becomes one that scales the loss:
        ``hf.mixed_precision.LossScaleOptimizer``.

        Args:
            optimizer: one of ``hf.optimizers``, or its name.
            loss: a name, an object of ``hf.losses`` or a function of labels and predictions; a list or dict of them
                for several outputs.
            loss_weights: the weight of each loss, whose sum counts.
            metrics: a list of names, objects and functions; a list or dict of lists for several outputs.
            weighted_metrics: metrics that heed the weights of samples.
            run_eagerly: whether it runs without compiling, so that a debugger stops in each step.
            steps_per_execution: of how many batches callbacks are told at once.
            jit_compile: ignored: steps are always compiled, unless they run eagerly.
            auto_scale_loss: whether the loss is scaled with the policy "mixed_float16".
        """
        if not isinstance(steps_per_execution, int) or steps_per_execution < 1:
            raise ArgumentError(self.name, f"steps_per_execution is {steps_per_execution!r}; it must be 1 or more.")
        chosen = optimizers.get(optimizer)
        scales = auto_scale_loss and self.dtype_policy.name == "mixed_float16"
        if scales and not isinstance(chosen, optimizers.LossScaleOptimizer):
            chosen = optimizers.LossScaleOptimizer(chosen)
        naming.settle(self.layers)
        self._compiled = CompileSettings(
            chosen,
            CompiledLoss(loss, loss_weights) if loss is not None else None,
            CompiledMetrics(metrics, weighted_metrics, loss),
            steps_per_execution,
            run_eagerly,
        )
        self._compiled.make_steps(self)

    @property
    def compiled(self) -> bool:
        """Whether ``compile`` was called."""
        return self._compiled is not None

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that ``compile`` was given."""
        return self._settings.optimizer

    @property
    def loss(self) -> Any:
        """The loss that ``compile`` was given."""
        settings = self._settings
        return settings.loss and settings.loss.given

    @property
    def _settings(self) -> CompileSettings:
        if self._compiled is None:
            raise ArgumentError(self.name, "the model has no loss and no optimizer: call compile() first.")
        return self._compiled

    @property
    def metrics(self) -> list[Any]:
        """The mean loss, the metrics of ``compile`` as one called "compile_metrics", whose result is a dict, and those
        that are attributes of the model or of layers in it.  Subclasses may say otherwise; what is listed starts anew
        with each epoch."""
        layer_metrics = _metrics_within(self)
        settings = self._compiled
        if settings is None:
            return layer_metrics
        compiled = [AllMetrics(settings.metrics, self._output_names())] if settings.metrics.given else []
        return [settings.tracker, *compiled, *settings.trackers.values(), *layer_metrics]

    @property
    def metrics_names(self) -> list[str]:
        """The names of what is logged, in the order in which ``evaluate`` returns it."""
        settings = self._compiled
        layer_metrics = [metric.name for metric in _metrics_within(self)]
        if settings is None:
            return layer_metrics
        trackers = [metric.name for metric in (settings.tracker, *settings.trackers.values())]
        return [*trackers, *settings.metrics.labels, *layer_metrics]

    def compiled_loss(self, y: object, y_pred: object, sample_weight: object = None) -> Any:
        """The loss of ``compile`` and of regularizers, as older ``train_step`` methods ask for it.

        Args:
            y: labels: arrays, or None.
            y_pred: predictions.
            sample_weight: a weight for each sample, or None.

        Returns:
            A scalar: ``compute_loss``.
        """
        return self.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)

    @property
    def compiled_metrics(self) -> Any:
        """The metrics of ``compile`` as one, as older ``train_step`` methods ask for them."""
        return AllMetrics(self._settings.metrics, self._output_names())

    def reset_metrics(self) -> None:
        """Let all metrics start anew."""
        with suspended():
            for metric in self.metrics:
                metric.reset_state()

    def _output_names(self) -> Sequence[str] | None:
        """The names of several outputs, where they have some."""
        return None

    # Steps, for subclasses to define as they like

    def train_step(self, data: object) -> dict[str, Any]:
        """One step of training for a batch.

        This one computes predictions and their loss, has the optimizer apply its gradients, and updates the metrics.

        Args:
            data: a batch: ``(x, y, sample_weight)``, ``(x, y)``, or ``x``.

        Returns:
            What is logged, by name.
        """
        x, y, sample_weight = parts(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        gradients = tape.gradient(scaled, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        return self._logs(x, y, y_pred, sample_weight, loss)

    def test_step(self, data: object) -> dict[str, Any]:
        """One step of ``evaluate`` for a batch.

        Args:
            data: a batch: ``(x, y, sample_weight)``, ``(x, y)``, or ``x``.

        Returns:
            What is logged, by name.
        """
        x, y, sample_weight = parts(data)
        y_pred = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        return self._logs(x, y, y_pred, sample_weight, loss)

    def predict_step(self, data: object) -> Any:
        """One step of ``predict`` for a batch.

        Args:
            data: a batch: ``(x, y, sample_weight)``, ``(x, y)``, or ``x``.

        Returns:
            The outputs.
        """
        return self(parts(data).x, training=False)

    def compute_loss(
        self,
        x: object = None,
        y: object = None,
        y_pred: object = None,
        sample_weight: object = None,
        training: bool = True,
    ) -> Any:
        """The loss of a batch: that of ``compile``, and those of regularizers and of ``add_loss``.

        Args:
            x: the inputs, or None.
            y: the labels, or None.
            y_pred: the predictions.
            sample_weight: a weight for each sample, or None.
            training: whether the model is being trained.

        Returns:
            A scalar.

        Raises:
            ArgumentError: where there is no loss.
        """
        settings = self._settings
        more = self.losses
        losses: list[Any] = []
        if settings.loss is not None:
            by_output, losses = settings.loss(y, y_pred, sample_weight, self._output_names())
            if len(losses) > 1:
                for name, value in by_output.items():
                    settings.tracker_of(str(name)).update_state(_of_whole_batch(value), sample_weight=_samples(x))
        # Each replica of a strategy has its share of what does not depend on its samples: the loss is their sum.
        losses += [value / replica_count() for value in more] if replica_count() > 1 else more
        if not losses:
            raise ArgumentError(self.name, "there is no loss: give one to compile(), or call add_loss in a layer.")
        total = losses[0]
        for value in losses[1:]:
            total = total + value
        return total

    def compute_metrics(
        self, x: object = None, y: object = None, y_pred: object = None, sample_weight: object = None
    ) -> dict[str, Any]:
        """Update the metrics of ``compile``.

        Args:
            x: the inputs, or None.
            y: the labels, or None.
            y_pred: the predictions.
            sample_weight: a weight for each sample, or None.

        Returns:
            The results of all metrics, by name.
        """
        self._settings.metrics.update(y, y_pred, sample_weight, self._output_names())
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of all metrics.

        Returns:
            A dict from names to tensors.
        """
        settings = self._settings
        results: dict[str, Any] = {}
        for metric in [settings.tracker, *settings.trackers.values()]:
            results[metric.name] = metric.result()
        results.update(settings.metrics.results())
        for metric in _metrics_within(self):
            result = metric.result()
            results.update(result if isinstance(result, dict) else {metric.name: result})
        return results

    def _logs(self, x: object, y: object, y_pred: object, sample_weight: object, loss: object) -> dict[str, Any]:
        self._settings.tracker.update_state(_of_whole_batch(loss), sample_weight=_samples(x))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    # Loops

    def fit(
        self,
        x: object = None,
        y: object = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: object = "auto",
        callbacks: Sequence[Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: object = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: object = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: object = 1,
    ) -> History:
        """Train the model on data, epoch by epoch.

        Arrays are cut into batches, in a new order each epoch.  A ``hf.data.Dataset``, a generator, a data loader, or
        anything else that can be iterated over gives batches ``(x, y)`` or ``(x, y, sample_weight)``.

        Args:
            x: inputs: an array, lists and dicts of arrays, or what gives batches.
            y: labels: arrays, or None where ``x`` gives batches.
            batch_size: the number of rows of a batch, 32 unless given.
            epochs: the number of the last epoch.
            verbose: 0 says nothing, 1 draws a bar, 2 prints a line for each epoch; "auto" is 1 on a terminal and 2
                elsewhere.
            callbacks: a list of ``hf.callbacks``, or None.
            validation_split: the share of the last rows that is kept for validation.
            validation_data: ``(x, y)``, ``(x, y, sample_weight)``, or what gives batches; or None.
            shuffle: whether arrays are in a new order each epoch.
            class_weight: a weight for each class number, or None.
            sample_weight: a weight for each sample, or None.
            initial_epoch: the number of the first epoch, from 0.
            steps_per_epoch: the number of batches of an epoch; all unless given.
            validation_steps: the number of batches of a validation; all unless given.
            validation_batch_size: the number of rows of a batch of validation; ``batch_size`` unless given.
            validation_freq: after how many epochs there is a validation, or a list of epochs, from 1.

        Returns:
            What was logged, which is ``history`` too.

        Raises:
            ArgumentError: before ``compile``.

        >>> model = hf.Sequential([hf.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(hf.ones((8, 2)), hf.zeros((8, 1)), epochs=2, verbose=0)
        >>> sorted(history.history), history.epoch
        (['loss'], [0, 1])
        """
        settings = self._settings
        epochs, initial_epoch = at_least("fit", "epochs", epochs, 0), at_least("fit", "initial_epoch", initial_epoch, 0)
        data = Batch(x, y, sample_weight)
        _check_frequency(validation_freq)
        if validation_split and validation_data is None:
            data, validation_data = split_off("fit", data, validation_split)
        source = feed(
            "fit",
            *data,
            batch_size=batch_size,
            steps=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
        )
        if validation_batch_size is None:
            validation_batch_size = batch_size
        validation = self._validation(validation_data, validation_batch_size, validation_steps)
        callback_list = CallbackList(
            callbacks, self, verbose, {"epochs": epochs, "steps": source.steps, "verbose": verbose}
        )
        self._run.history, self._run.stop_training = callback_list.history, False
        self._run.source = source
        try:
            self._run.first_epoch = initial_epoch
            callback_list.on_train_begin()
            for epoch in range(self._run.first_epoch, epochs):
                if not source.taken:  # else it goes on in the middle of the epoch
                    self.reset_metrics()
                callback_list.on_epoch_begin(epoch)
                logs = self._train_epoch(source, callback_list, settings)
                if logs is None:
                    self._ran_out(epoch, "the data", source)
                    if not source.is_empty:
                        break
                    logs = {}
                if validation is not None and _is_due(epoch + 1, validation_freq):
                    val_logs = self._evaluate(validation, callback_list)
                    if val_logs is None:
                        self._ran_out(epoch, "the validation data", validation)
                        validation = None
                    logs.update({f"val_{name}": value for name, value in (val_logs or {}).items()})
                callback_list.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
            self._finish_averages()
            callback_list.on_train_end(callback_list.last_logs)
        finally:
            source.close()
            if validation is not None:
                validation.close()
            callback_list.close()
            self._run.source = None
        return callback_list.history

    def _finish_averages(self) -> None:
        """At the end of ``fit``: the averages that the optimizer keeps (``use_ema``) become the variables' values."""
        optimizer = self._settings.optimizer
        if isinstance(optimizer, optimizers.Optimizer):
            optimizer.finalize_variable_values(self._trained_by(optimizer))

    def _trained_by(self, optimizer: optimizers.Optimizer) -> Iterator[Variable]:
        """The variables that it has updated; the model is searched for them when somebody asks for the first."""
        yield from filter(optimizer.has_trained, self.trainable_variables)

    def _make_metrics(self, batch: Batch) -> None:
        """Make the metrics that the first step would make, as far as it is no step of a subclass."""
        kind = type(self)
        if kind.train_step is Trainer.train_step and kind.test_step is Trainer.test_step and self._compiled is not None:
            self._test(*batch)

    def _ran_out(self, epoch: int, what: str, source: Feed) -> None:
        """An epoch of ``fit`` was given no batch: of data without rows, which the first epoch warns of.  Another source
        is wrong in the first epoch, and in later ones a generator has ended."""
        if source.is_empty:
            if epoch == self._run.first_epoch:
                warnings.warn(f"{what} has no samples: {_EMPTY[what]}", stacklevel=3)
            return
        if epoch == self._run.first_epoch:
            raise ArgumentError("fit", f"{what} gave no batch: it is empty, or a generator that has ended.")
        follows = "training ends" if what == "the data" else "epochs from here on are not validated"
        warnings.warn(f"{what} gave no more batches in epoch {epoch + 1}: {follows}", stacklevel=3)

    def _train_epoch(self, source: Feed, told: CallbackList, settings: CompileSettings) -> dict[str, float] | None:
        """What an epoch logged; None if there was no batch."""
        logs: dict[str, Any] | None = None
        number, every = 0, settings.steps_per_execution
        if source.taken:  # all of its batches may have been
            logs = self.get_metrics_result()
        step, before = settings.train_step, None
        for number, batch in enumerate(source.epoch(), source.taken):
            if source.partial_batch_size:
                expect_rest(step, source, batch)
            if number % every == 0:
                told.on_train_batch_begin(number)
            try:
                logs = _checked(step(*batch), "train_step")
            except Exception as error:
                check_alike("fit", number, batch, before, error)
                raise
            before = batch
            if (number + 1) % every == 0:
                told.on_train_batch_end(number, logs)
            if self.stop_training:
                break
        if before is not None and (number + 1) % every:
            told.on_train_batch_end(number, logs)  # of a last group that is not whole
        return None if logs is None else floats(logs)

    def _validation(self, data: object, batch_size: int | None, steps: int | None) -> Feed | None:
        if data is None:
            return None
        if isinstance(data, Batch) or (isinstance(data, (tuple, list)) and len(data) in (1, 2, 3)):
            return feed("fit", *data, batch_size=batch_size, steps=steps, once=True)
        return feed("fit", data, steps=steps, once=True)

    def evaluate(
        self,
        x: object = None,
        y: object = None,
        batch_size: int | None = None,
        verbose: object = "auto",
        sample_weight: object = None,
        steps: int | None = None,
        callbacks: object = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and the metrics of data, which are given as to ``fit``.

        Args:
            x: inputs: an array, lists and dicts of arrays, or a dataset or generator of batches.
            y: labels: arrays, or None.
            batch_size: the number of rows of a batch; 32 unless given. None for batches of a dataset.
            verbose: 0 is silent, 1 shows a bar, 2 a line; "auto" chooses.
            sample_weight: a weight for each sample, or None.
            steps: the number of batches; all unless given.
            callbacks: a list of ``hf.callbacks``, or None.
            return_dict: whether a dict by name is returned.

        Returns:
            A number, a list of numbers in the order of ``metrics_names``, or a dict by name.
        """
        source = feed("evaluate", x, y, sample_weight, batch_size=batch_size, steps=steps, once=True)
        callback_list = CallbackList(
            callbacks, self, verbose, {"steps": source.steps, "verbose": verbose}, history=False
        )
        try:
            logs = self._evaluate(source, callback_list)
        finally:
            source.close()
            callback_list.close()
        if logs is None:
            raise ArgumentError("evaluate", "the data gave no batch: it is empty, or a generator that has ended.")
        if return_dict:
            return logs
        values = list(logs.values())
        return values[0] if len(values) == 1 else values

    def _evaluate(self, source: Feed, told: CallbackList) -> dict[str, float] | None:
        """What an evaluation logged; None if there was no batch."""
        self.reset_metrics()
        source.restart()  # each validation is of the same batches
        step = self._settings.test_step
        logs: dict[str, Any] | None = None
        told.on_test_begin()
        for number, batch in enumerate(source.epoch()):
            if source.partial_batch_size:
                expect_rest(step, source, batch)
            told.on_test_batch_begin(number)
            logs = _checked(step(*batch), "test_step")
            told.on_test_batch_end(number, logs)
        results = {} if logs is None else floats(logs)
        told.on_test_end(results)
        return results if logs is not None else None

    def predict(
        self,
        x: object,
        batch_size: int | None = None,
        verbose: object = "auto",
        steps: int | None = None,
        callbacks: object = None,
    ) -> Any:
        """The outputs for all inputs, batch by batch.

        Args:
            x: inputs: an array, lists and dicts of arrays, or a dataset or generator of batches.
            batch_size: the number of rows of a batch; 32 unless given. None for batches of a dataset.
            verbose: 0 is silent, 1 shows a bar, 2 a line; "auto" chooses.
            steps: the number of batches; all unless given.
            callbacks: a list of ``hf.callbacks``, or None.

        Returns:
            NumPy arrays in the structure of the outputs.
        """
        source = feed("predict", x, batch_size=batch_size, steps=steps, once=True)
        callback_list = CallbackList(
            callbacks, self, verbose, {"steps": source.steps, "verbose": verbose}, history=False
        )
        step = self._predictor()
        batches: list[list[Any]] = []
        structure = None
        try:
            callback_list.on_predict_begin()
            for number, batch in enumerate(source.epoch()):
                if source.partial_batch_size:
                    expect_rest(step, source, batch[:1])
                callback_list.on_predict_batch_begin(number)
                outputs = step(batch.x)
                leaves, structure = pytree.flatten(outputs)
                batches.append(leaves)
                callback_list.on_predict_batch_end(number, {"outputs": outputs})
            callback_list.on_predict_end()
        finally:
            source.close()
            callback_list.close()
        if structure is None:
            raise ArgumentError("predict", "the data gave no batch: it is empty, or a generator that has ended.")
        return pytree.unflatten(structure, [_joined(leaves) for leaves in zip(*batches)])

    def _predictor(self) -> Any:
        if self._compiled is not None:
            return self._compiled.predict_step
        if self._run.predict_step is None:
            self._run.predict_step = function(self._predict, name=f"{self.name}.predict_step")
        return self._run.predict_step

    def _predict(self, x: object) -> Any:
        return self.predict_step(_as_batch(x, None, None))

    def _train(self, x: object, y: object, sample_weight: object) -> Any:
        if _samples(x) == 0:
            raise ShapeError(self.name, "a batch has no samples: its mean loss would make all weights NaN.")
        return self.train_step(_as_batch(x, y, sample_weight))

    def _test(self, x: object, y: object, sample_weight: object) -> Any:
        return self.test_step(_as_batch(x, y, sample_weight))

    # One batch

    def train_on_batch(
        self,
        x: object,
        y: object = None,
        sample_weight: object = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch.

        Args:
            x: inputs: an array, lists and dicts of arrays, or a dataset or generator of batches.
            y: labels: arrays, or None.
            sample_weight: a weight for each sample, or None.
            class_weight: a weight for each class number, or None.
            return_dict: whether a dict by name is returned.

        Returns:
            What is logged of it: a number, a list of numbers, or a dict by name.
        """
        source = feed("train_on_batch", x, y, sample_weight, batch_size=2**62, class_weight=class_weight)
        return self._one(source, self._settings.train_step, return_dict)

    def test_on_batch(
        self, x: object, y: object = None, sample_weight: object = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one batch.

        Args:
            x: inputs: an array, lists and dicts of arrays, or a dataset or generator of batches.
            y: labels: arrays, or None.
            sample_weight: a weight for each sample, or None.
            return_dict: whether a dict by name is returned.

        Returns:
            What is logged of it: a number, a list of numbers, or a dict by name.
        """
        source = feed("test_on_batch", x, y, sample_weight, batch_size=2**62)
        return self._one(source, self._settings.test_step, return_dict)

    def _one(self, source: Feed, step: Any, return_dict: bool) -> Any:
        self.reset_metrics()
        logs = floats(_checked(step(*next(source.epoch())), "the step"))
        values = list(logs.values())
        return logs if return_dict else values[0] if len(values) == 1 else values

    def predict_on_batch(self, x: object) -> Any:
        """The outputs for one batch.

        Args:
            x: inputs: an array, lists and dicts of arrays, or a dataset or generator of batches.

        Returns:
            NumPy arrays in the structure of the outputs.
        """
        leaves, structure = pytree.flatten(self._predictor()(x))
        return pytree.unflatten(structure, [leaf.numpy() for leaf in leaves])


class TrainingRun:
    """What changes from one ``fit`` to the next.  It is an object of its own because compiled steps watch all
    attributes of a model, any of which may be a layer."""

    def __init__(self) -> None:
        self.history: History | None = None
        self.stop_training = False
        self.first_epoch = 0  # of the ``fit`` that goes on, which a callback may set when it begins
        self.predict_step: object = None  # of a model that was not compiled
        self.is_building = False  # its first call goes on
        self.source: Feed | None = None  # of the ``fit`` that goes on


class CompileSettings:
    """What ``compile`` was given, and what was made of it.  No part of the model: these variables are not its."""

    def __init__(
        self,
        optimizer: Optimizer,
        loss: CompiledLoss | None,
        metrics: CompiledMetrics,
        steps_per_execution: int,
        run_eagerly: bool,
    ) -> None:
        self.optimizer, self.loss, self.metrics = optimizer, loss, metrics
        self.steps_per_execution = steps_per_execution
        self.run_eagerly = run_eagerly
        self.strategy = get_strategy() if has_strategy() else None
        with suspended():
            self.tracker = Mean("loss")
        self.trackers: dict[str, Mean] = {}
        self.train_step: Any = None
        self.test_step: Any = None
        self.predict_step: object = None

    def arguments(self) -> dict[str, Any]:
        """What ``compile`` was given."""
        loss = self.loss
        return {
            "optimizer": self.optimizer,
            "loss": None if loss is None else loss.given,
            "loss_weights": None if loss is None else loss.weights,
            **self.metrics.arguments(),
            "run_eagerly": self.run_eagerly,
            "steps_per_execution": self.steps_per_execution,
        }

    def make_steps(self, model: Trainer) -> None:
        """The model's steps as programs, or as they are."""
        for kind, step in (("train", model._train), ("test", model._test), ("predict", model._predict)):
            name = f"{model.name}.{kind}_step"
            if self.strategy is not None:
                compiled: object = ReplicatedStep(self.strategy, step, name, not self.run_eagerly, kind == "predict")
            else:
                compiled = step if self.run_eagerly else function(step, name=name)
            setattr(self, f"{kind}_step", compiled)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, whose models make steps of their own."""
        return vars(self) | {"train_step": None, "test_step": None, "predict_step": None}

    def tracker_of(self, name: str) -> Mean:
        """The mean loss of one of several outputs."""
        if name not in self.trackers:
            self.trackers[name] = Mean(f"{name}_loss")
        return self.trackers[name]


def floats(logs: Mapping[str, Any]) -> dict[str, Any]:
    """What was logged as Python's floats, arrays where it is not a scalar."""
    return {name: _float(value) for name, value in logs.items()}


def _float(value: object) -> Any:
    if isinstance(value, (Tensor, Variable)):
        return float(value.item()) if value.size == 1 else value.numpy()
    return value


def _checked(logs: object, step: str) -> dict[str, Any]:
    if not isinstance(logs, dict):
        raise ArgumentTypeError(
            "fit", f"{step} returned {type(logs).__name__}; it must return a dict of what is logged."
        )
    if not any(isinstance(value, dict) for value in logs.values()):
        return logs
    flat: dict[str, Any] = {}
    for name, value in logs.items():
        flat.update(value if isinstance(value, dict) else {name: value})  # all metrics of ``compile`` are one of dicts
    return flat


def _as_batch(x: object, y: object, sample_weight: object) -> Any:
    """A batch as ``train_step`` takes it: without what was not given, at its end."""
    if sample_weight is not None:
        return x, y, sample_weight
    if y is not None:
        return x, y
    return (x,) if isinstance(x, tuple) else x


def _of_whole_batch(loss: Any) -> Any:
    """A replica's share of the loss, as large as if all others had the same: what the mean over replicas is of."""
    count = replica_count()
    return loss if count == 1 else loss * count


def _samples(x: object) -> Any:
    """The number of samples in a batch."""
    return as_tensor(pytree.flatten(x)[0][0], "fit").shape[0]


def _joined(parts_of_all: Iterable[Any]) -> np.ndarray:
    arrays = [np.asarray(part) for part in parts_of_all]
    return arrays[0].copy() if len(arrays) == 1 else np.concatenate(arrays)


def _check_frequency(every: object) -> None:
    if isinstance(every, int):
        if every < 1:
            raise ArgumentError("fit", f"validation_freq is {every!r}; it must be 1 or more, or the epochs themselves.")
    elif not isinstance(every, Collection):
        raise ArgumentTypeError("fit", f"validation_freq is {every!r}; it must be an int, or the epochs themselves.")


def _is_due(epoch: int, every: Any) -> bool:
    return epoch % every == 0 if isinstance(every, int) else epoch in every


def _metrics_within(layer: Layer) -> list[Any]:
    """The metrics that are attributes of a layer, and of those in it."""
    result: list[Any] = []
    for module in [layer, *layer.submodules]:
        if isinstance(module, Layer):
            result += [one for one in children(module) if isinstance(one, Metric)]
    return result


def children(value: Any) -> list[Any]:
    """The layers and metrics that are attributes, each once: those in lists, tuples and dicts too, and in modules that
    are no layers."""
    by_id: dict[int, Any] = {}

    def visit(part: object) -> None:
        if id(part) in by_id:
            return
        by_id[id(part)] = part
        if isinstance(part, Module) and not isinstance(part, Layer):
            part = dict(part._attributes())
        for one in part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ():
            if isinstance(one, _HOLDERS):
                visit(one)

    for name, part in value._attributes():
        if isinstance(part, _HOLDERS) and name not in ("_compiled", "_run"):
            visit(part)
    return [one for one in by_id.values() if isinstance(one, (Layer, Metric))]


_HOLDERS = Module, Metric, list, tuple, dict
