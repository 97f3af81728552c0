"""What is told of the course of training."""

from __future__ import annotations

import os
from typing import Any


class Callback:
    """The base of all callbacks, and of your own: define the methods for what you want to be told of.

    ``logs`` hold what was logged up to then, by name, as floats.  ``self.model`` is the model, ``self.params`` the
    numbers of ``epochs`` and ``steps``, and ``verbose``; ``self.model.stop_training = True`` ends ``fit`` after the
    batch.

    >>> class Say(hf.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         print(f"epoch {epoch}: {sorted(logs)}")
    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), callbacks=[Say()], verbose=0)
    epoch 0: ['loss']
    """

    _of_first_process = False  # of processes that share a program's replicas out the first alone has it

    model: Any = None
    params: dict[str, Any] = {}  # replaced, never changed

    def set_model(self, model: object) -> None:
        """Called first, with the model.

        Args:
            model: the model that is trained.
        """
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Called first, with the numbers of epochs and steps.

        Args:
            params: "epochs", "steps" and "verbose".
        """
        self.params = params

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``fit`` begins.

        Args:
            logs: what is logged, by name.
        """

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``fit`` ends.

        Args:
            logs: what was logged last, by name.
        """

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when an epoch begins.

        Args:
            epoch: the number of the epoch, from 0.
            logs: what is logged, by name.
        """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when an epoch ends, validation included.

        Args:
            epoch: the number of the epoch, from 0.
            logs: the loss and metrics of the epoch by name; those of validation begin with ``val_``.
        """

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of training begins.

        Args:
            batch: the number of the batch in its epoch, from 0.
            logs: what is logged, by name.
        """

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of training ends.

        Args:
            batch: the number of the batch in its epoch, from 0.
            logs: the loss and metrics so far in the epoch, by name.
        """

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``evaluate``, or the validation of ``fit``, begins.

        Args:
            logs: what is logged, by name.
        """

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``evaluate``, or the validation of ``fit``, ends.

        Args:
            logs: what is logged, by name.
        """

    def on_test_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of evaluation begins.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of evaluation ends.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """

    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``predict`` begins.

        Args:
            logs: what is logged, by name.
        """

    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called when ``predict`` ends.

        Args:
            logs: what is logged, by name.
        """

    def _close(self) -> None:
        """The run has ended, be it by an error."""

    def on_predict_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of prediction begins.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """

    def on_predict_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when a batch of prediction ends.

        Args:
            batch: the number of the batch, from 0.
            logs: "outputs" are the outputs of the batch.
        """


class History(Callback):
    """What ``fit`` logged: ``history`` has a list for each name, ``epoch`` the numbers of the epochs.

    ``fit`` makes one and returns it.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> history = model.fit(np.ones((4, 2)), np.ones(4), epochs=3, verbose=0)
    >>> history.epoch, len(history.history["loss"])
    ([0, 1, 2], 3)
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page with the curves of what was logged into an HTML file, which asks nothing of the network.

        Args:
            path: the path of the file.

        Raises:
            OSError: where the file cannot be written.
        """
        from hybridflow.jit import report  # which few programs need

        model = getattr(self, "model", None)
        name = getattr(model, "name", None) or "model"
        optimizer = getattr(model, "optimizer", None)
        settings = [("model", name), ("epochs", len(self.epoch))]
        if optimizer is not None:
            rate: object = getattr(optimizer, "learning_rate", None)
            shown = f"{rate.item():.6g}" if hasattr(rate, "item") else type(rate).__name__
            settings += [("optimizer", type(optimizer).__name__), ("learning rate", shown)]
        report.write(path, report.of_history(self.history, f"Training of {name}", settings))
