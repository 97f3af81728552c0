"""The averages of an optimizer in the place of a model's weights."""

from __future__ import annotations

from typing import Any

from hybridflow.callbacks.callback import Callback
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError


class SwapEMAWeights(Callback):
    """Evaluates and predicts with the averages that the optimizer keeps (``use_ema``), and trains on with the weights.

    With ``swap_on_epoch`` callbacks see the averages at the end of epochs too, as when models are saved there.
    Raises ArgumentError where the optimizer keeps none.

    Args:
        swap_on_epoch: whether to swap at the end of each epoch rather than around evaluations.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(hf.optimizers.SGD(0.1, use_ema=True), "mse")
    >>> swap = hf.callbacks.SwapEMAWeights()
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[swap], verbose=0)
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        self.swap_on_epoch = swap_on_epoch
        self._weights: list[tuple[Variable, Tensor]] = []  # while the model has the averages

    def _take_averages(self) -> None:
        if self._weights:
            return
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ArgumentError("SwapEMAWeights", "the optimizer keeps no averages. Make it with use_ema=True.")
        trained = [v for v in self.model.trainable_variables if optimizer.has_trained(v)]
        self._weights = [(variable, variable.value()) for variable in trained]
        for variable in trained:
            variable.assign(optimizer.get_slot(variable, "average").value().astype(variable.dtype))

    def _give_back(self) -> None:
        for variable, weights in self._weights:
            variable.assign(weights)
        self._weights = []

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.swap_on_epoch:
            self._give_back()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.swap_on_epoch:
            self._take_averages()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._weights = []  # the end of ``fit`` has made the averages the weights

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._take_averages()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        self._give_back()

    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._take_averages()

    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        self._give_back()

    def _close(self) -> None:
        self._give_back()  # of a run that did not come to its end
