"""``fit``, ``evaluate`` and ``predict``: Python's loop over batches around compiled steps."""

from __future__ import annotations

import warnings

import numpy as np
from keras.src import backend, callbacks as callbacks_module, optimizers as optimizers_module, tree
from keras.src.backend import config
from keras.src.trainers import epoch_iterator, trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

import hybridflow as hf
from hybridflow import code_traits


class _DatasetAdapter(DataAdapter):
    """The batches of a dataset of hybridflow's, for Keras."""

    batch_size = has_partial_batch = partial_batch_size = None

    def __init__(self, dataset):
        self._dataset = dataset

    def get_numpy_iterator(self):
        return self._dataset.as_numpy_iterator()

    @property
    def num_batches(self):
        count = int(self._dataset.cardinality())
        return count if count >= 0 else None


class EpochIterator(epoch_iterator.EpochIterator):
    """Keras's iterator over batches, which takes datasets of hybridflow, too."""

    def __init__(self, x, y=None, sample_weight=None, *, class_weight=None, shuffle=False, **options):
        if isinstance(x, hf.data.Dataset):
            if y is not None or sample_weight is not None or class_weight is not None:
                raise ValueError("A hf.data.Dataset yields (x, y) or (x, y, sample_weight): give them in its elements.")
            x = _DatasetAdapter(x)
        super().__init__(x, y, sample_weight, class_weight=class_weight, shuffle=shuffle, **options)


class Trainer(base_trainer.Trainer):
    """What Keras's models inherit to be trained by hybridflow."""

    def __init__(self):
        super().__init__()
        self.train_function = self.test_function = self.predict_function = None

    # ---- steps

    def _hf_outputs(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _hf_scored(self, x, y, sample_weight, training):
        y_pred = self._hf_outputs(x, training)
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        count = next(part for part in tree.flatten(x) if part is not None).shape[0]
        self._loss_tracker.update_state(loss, sample_weight=count)
        return y_pred, loss

    def train_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        weights = self.trainable_weights
        with hf.GradientTape() as tape:
            y_pred, loss = self._hf_scored(x, y, sample_weight, True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        if weights:
            gradients = tape.gradient(loss, [variable._value for variable in weights])
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred, _ = self._hf_scored(x, y, sample_weight, False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._hf_outputs(x, False)

    def _hf_compiled(self, step, together):
        """A function of the batches of one execution: ``together`` joins what their steps return."""

        @code_traits.declare("a step")
        def on_batch(data):
            return step(data)

        one = on_batch if self.run_eagerly or not self.jit_compile else hf.function(on_batch, name=step.__name__)

        def on_batches(batches):
            outputs = None
            for data in batches:
                data = tree.map_structure(_as_tensor, data)
                outputs = one(data) if outputs is None else together(outputs, one(data))
            return outputs

        return on_batches

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._hf_compiled(self.train_step, _last)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._hf_compiled(self.test_step, _last)

    def make_predict_function(self, force=False):
        if self.predict_function is None or force:
            self.predict_function = self._hf_compiled(self.predict_step, _joined)

    # ---- loops

    def _hf_callbacks(self, callbacks, verbose, epochs, iterator, **options):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(
            callbacks,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=iterator.num_batches,
            model=self,
            **options,
        )

    @traceback_utils.filter_traceback
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn(f"Limiting epochs to {most}", stacklevel=2)
            epochs = most
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        if validation_data is not None:
            val_x, val_y, val_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
        iterator = EpochIterator(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            steps_per_execution=self.steps_per_execution,
        )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._hf_callbacks(callbacks, verbose, epochs, iterator, add_history=True)
        self.stop_training = False
        training_logs = {}
        self.make_train_function()
        callbacks.on_train_begin()
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = {}
            for begin_step, end_step, batches in iterator:
                callbacks.on_train_batch_begin(begin_step)
                logs = self.train_function(batches)
                callbacks.on_train_batch_end(end_step, logs)
                if self.stop_training:
                    break
            epoch_logs = dict(self._get_metrics_result_or_logs(logs))
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                if self._eval_epoch_iterator is None:
                    self._eval_epoch_iterator = EpochIterator(
                        x=val_x,
                        y=val_y,
                        sample_weight=val_weight,
                        batch_size=validation_batch_size or batch_size,
                        steps_per_execution=self.steps_per_execution,
                        steps_per_epoch=validation_steps,
                        shuffle=False,
                    )
                val_logs = self.evaluate(
                    x=val_x,
                    y=val_y,
                    sample_weight=val_weight,
                    batch_size=validation_batch_size or batch_size,
                    steps=validation_steps,
                    callbacks=callbacks,
                    return_dict=True,
                    _use_cached_eval_dataset=True,
                )
                epoch_logs.update({f"val_{name}": value for name, value in val_logs.items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            training_logs = epoch_logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        del self._eval_epoch_iterator
        callbacks.on_train_end(logs=training_logs)
        return self.history

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        self._assert_compile_called("evaluate")
        use_cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        if use_cached:
            iterator = self._eval_epoch_iterator
        else:
            iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                shuffle=False,
                steps_per_execution=self.steps_per_execution,
            )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._hf_callbacks(callbacks, verbose, 1, iterator)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        for begin_step, end_step, batches in iterator:
            callbacks.on_test_batch_begin(begin_step)
            logs = self.test_function(batches)
            callbacks.on_test_batch_end(end_step, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = EpochIterator(
            x=x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            shuffle=False,
            steps_per_execution=self.steps_per_execution,
        )
        if not all(layer.built for layer in self._flatten_layers()):
            for _, _, batches in iterator:
                data, _, _ = data_adapter_utils.unpack_x_y_sample_weight(batches[0])
                with backend.StatelessScope():
                    self(tree.map_structure(_as_tensor, data))
                break
            iterator.reset()
        callbacks = self._hf_callbacks(callbacks, verbose, 1, iterator)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        outputs, last = None, None
        for begin_step, end_step, batches in iterator:
            callbacks.on_predict_batch_begin(begin_step)
            last = self.predict_function(batches)
            if outputs is None:
                outputs = tree.map_structure(lambda part: [part], last)
            else:
                tree.map_structure_up_to(last, lambda parts, part: parts.append(part), outputs, last)
            callbacks.on_predict_batch_end(end_step, {"outputs": last})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        outputs = tree.map_structure(backend.convert_to_numpy, outputs)
        return tree.map_structure_up_to(last, np.concatenate, outputs)

    def _hf_on_batch(self, function, data, return_dict):
        logs = pythonify_logs(function([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        data = (x, y, sample_weight)
        self._symbolic_build(data_batch=data)
        self.make_train_function()
        self.reset_metrics()
        return self._hf_on_batch(self.train_function, data, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        data = (x, y, sample_weight)
        self._symbolic_build(data_batch=data)
        self.make_test_function()
        self.reset_metrics()
        return self._hf_on_batch(self.test_function, data, return_dict)

    def predict_on_batch(self, x):
        if not all(layer.built for layer in self._flatten_layers()):
            with backend.StatelessScope():
                self(tree.map_structure(_as_tensor, x))
        self.make_predict_function()
        return tree.map_structure(backend.convert_to_numpy, self.predict_function([(x,)]))


def _as_tensor(x):
    return x if x is None or isinstance(x, (str, bytes)) else backend.convert_to_tensor(x)


def _last(before, now):
    return now


def _joined(before, now):
    return tree.map_structure(lambda a, b: hf.concat([a, b], axis=0), before, now)
