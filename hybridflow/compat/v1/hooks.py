"""What is called around the runs of monitored sessions: hooks of ``tf.train``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.compat.export import TensorLike
from hybridflow.compat.v1.global_step import get_global_step
from hybridflow.compat.v1.platform import log_names
from hybridflow.compat.v1.saver import Saver
from hybridflow.compat.v1.summary import FileWriter, FileWriterCache, Summary, SummaryValue, merge_all

if TYPE_CHECKING:
    from hybridflow.compat.v1.session import Session


class SessionRunArgs(NamedTuple):
    """What a hook wants to be run, too."""

    fetches: object
    feed_dict: object = None
    options: object = None


class SessionRunValues(NamedTuple):
    """What came of it."""

    results: Any
    options: object = None
    run_metadata: object = None


class SessionRunContext:
    """A run that is about to begin, or over: hooks may ask that it is the last."""

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self.original_args, self.session = original_args, session
        self.stop_requested = False

    def request_stop(self) -> None:
        self.stop_requested = True


class SessionRunHook:
    """What is called around the runs of a session.  Subclasses define what they want to do."""

    def begin(self) -> None:
        """Before the session is made: operations can be added to the graph."""

    def after_create_session(self, session: object, coord: object) -> None:
        """When variables have values."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before each run; returns what is to be run with it."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """After each run."""

    def end(self, session: object) -> None:
        """Before the session is closed, unless an error closes it."""


class SecondOrStepTimer:
    """Says whether so many seconds or steps are over since it was last asked to remember."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise ValueError("exactly one of every_secs and every_steps must be given.")
        self._seconds, self._steps = every_secs, every_steps
        self._last: tuple[float, int] | None = None

    def reset(self) -> None:
        self._last = None

    def last_triggered_step(self) -> int | None:
        return None if self._last is None else self._last[1]

    def should_trigger_for_step(self, step: int) -> bool:
        if self._last is None:
            return True
        then, count = self._last
        if step == count:
            return False
        return time.time() >= then + self._seconds if self._seconds is not None else step >= count + (self._steps or 1)

    def update_last_triggered_step(self, global_step: int) -> tuple[float | None, int | None]:
        """Remember; returns how many seconds and steps are over."""
        now, before = time.time(), self._last
        self._last = (now, global_step)
        return (None, None) if before is None else (now - before[0], global_step - before[1])


def _step_tensor(what: str) -> Any:
    result = get_global_step()
    if result is None:
        raise RuntimeError(f"Global step should be created to use {what}: tf.train.get_or_create_global_step().")
    return result


class StopAtStepHook(SessionRunHook):
    """Ask for a stop after so many steps, or at a step."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("One of num_steps or last_step must be specified.")
        self._more, self._last = num_steps, last_step

    def begin(self) -> None:
        self._step = _step_tensor("StopAtStepHook")

    def after_create_session(self, session: Any, coord: object) -> None:
        if self._last is None:
            self._last = int(session.run(self._step)) + (self._more or 0)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if int(run_context.session.run(self._step)) >= (self._last or 0):
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """A loss is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stop, or raise NanLossDuringTrainingError, when a loss is NaN."""

    def __init__(self, loss_tensor: object, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(run_values.results):
            if self._fails:
                raise NanLossDuringTrainingError
            log_names["warning"]("Model diverged with loss = NaN.")
            run_context.request_stop()


class _Every(SessionRunHook):
    """The base of hooks that do something every so many seconds or steps of their own."""

    def __init__(self, every_n_iter: int | None, every_n_secs: float | None) -> None:
        self._timer = SecondOrStepTimer(every_n_secs, every_n_iter)
        self._runs = 0

    def _is_due(self) -> bool:
        due = self._timer.should_trigger_for_step(self._runs)
        self._runs += 1
        return due


class LoggingTensorHook(_Every):
    """Log values of tensors."""

    def __init__(
        self,
        tensors: Iterable[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self._only_at_end = every_n_iter is None and every_n_secs is None and at_end
        super().__init__(every_n_iter, float("inf") if self._only_at_end else every_n_secs)
        named = tensors if isinstance(tensors, dict) else {tensor: tensor for tensor in tensors}
        self._tensors, self._at_end, self._formatter = dict(named), at_end, formatter

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = not self._only_at_end and self._is_due()
        return SessionRunArgs(self._tensors) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._due:
            self._log_values(run_values.results)
            self._timer.update_last_triggered_step(self._runs - 1)

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log_values(session.run(self._tensors))

    def _log_values(self, values: dict[str, Any]) -> None:
        text = ", ".join(f"{name} = {value}" for name, value in values.items())
        log_names["info"]("%s", text if self._formatter is None else self._formatter(values))


class StepCounterHook(SessionRunHook):
    """Log how many steps are made in a second, and write it as a summary."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_n_secs, None if every_n_secs is not None else every_n_steps)
        self._folder, self._writer = output_dir, summary_writer

    def begin(self) -> None:
        self._step = _step_tensor("StepCounterHook")
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds:
                speed = (steps or 0) / seconds
                log_names["info"]("global_step/sec: %g", speed)
                if self._writer is not None:
                    self._writer.add_summary(Summary([SummaryValue("global_step/sec", speed)]), step)

    def end(self, session: object) -> None:
        if self._writer is not None:
            self._writer.flush()


class CheckpointSaverListener:
    """What is called around the saving of a CheckpointSaverHook."""

    def begin(self) -> None:
        """Before the session is made."""

    def before_save(self, session: object, global_step_value: int) -> None:
        """Before each saving."""

    def after_save(self, session: object, global_step_value: int) -> Any:
        """After each saving; returns True to end the training."""

    def end(self, session: object, global_step_value: int) -> None:
        """After the last saving."""


class CheckpointSaverHook(SessionRunHook):
    """Save every so many seconds or steps, at the beginning and at the end."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
        save_graph_def: bool = True,
    ) -> None:
        """``save_graph_def`` changes nothing: checkpoints have no graphs here."""
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._saver, self._scaffold, self._saved = saver, scaffold, -1
        self._listeners = list(listeners or ())

    def begin(self) -> None:
        self._step = _step_tensor("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def _now(self, session: Any) -> int:
        return int(session.run(self._step))

    def after_create_session(self, session: object, coord: object) -> None:
        if self._saver is None:
            self._saver = self._scaffold.saver if self._scaffold is not None and self._scaffold.saver else Saver()
        self._save(session, self._now(session))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = self._now(run_context.session)
        if self._timer.should_trigger_for_step(step) and self._save(run_context.session, step):
            run_context.request_stop()

    def end(self, session: object) -> None:
        step = self._now(session)
        if step != self._saved:
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Save; whether a listener asks for the end."""
        self._timer.update_last_triggered_step(step)
        for listener in self._listeners:
            listener.before_save(session, step)
        os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
        self._saver.save(session, self._path, global_step=step)
        self._saved = step
        asked = [listener.after_save(session, step) for listener in self._listeners]  # each of them is called
        return any(asked)


class SummarySaverHook(SessionRunHook):
    """Write summaries every so many seconds or steps."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: object = None,
        summary_op: TensorLike | None = None,
    ) -> None:
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._folder, self._writer, self._op = output_dir, summary_writer, summary_op

    def begin(self) -> None:
        self._step = _step_tensor("SummarySaverHook")
        if self._op is None:
            self._op = merge_all()
        if self._writer is None and self._op is not None:
            self._writer = FileWriter(str(self._folder))
        self._next = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._op is not None and self._timer.should_trigger_for_step(self._next)
        return SessionRunArgs(self._op) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_context.session.run(self._step))
        self._next = step + 1
        if self._due:
            self._timer.update_last_triggered_step(step)
            self._writer.add_summary(run_values.results, step)

    def end(self, session: object) -> None:
        if self._writer is not None:
            self._writer.flush()


class FinalOpsHook(SessionRunHook):
    """Run tensors at the end: ``final_ops_values``."""

    def __init__(self, final_ops: object, final_ops_feed_dict: object = None) -> None:
        self._ops, self._feeds = final_ops, final_ops_feed_dict
        self.final_ops_values: object = None

    def end(self, session: Any) -> None:
        self.final_ops_values = session.run(self._ops, self._feeds)


class FeedFnHook(SessionRunHook):
    """Feed what a function returns."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
