"""Sessions that prepare themselves, save, and call hooks: ``tf.train.MonitoredTrainingSession`` and its like."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hybridflow.compat.export import TensorLike
from hybridflow.compat.v1.errors import OutOfRangeError
from hybridflow.compat.v1.global_step import get_global_step
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.grouping import group
from hybridflow.compat.v1.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from hybridflow.compat.v1.queues import Coordinator, start_queue_runners
from hybridflow.compat.v1.saver import Saver, latest_checkpoint
from hybridflow.compat.v1.session import Session
from hybridflow.compat.v1.variable_functions import global_variables, local_variables


class Scaffold:
    """What a session begins with: operations that give variables values, a saver, a summary of all summaries."""

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[..., Any] | None = None,
        ready_op: object = None,
        ready_for_local_init_op: object = None,
        local_init_op: Any = None,
        summary_op: TensorLike | None = None,
        saver: Any = None,
        copy_from_scaffold: object = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        """Variables are ready after these operations: nothing waits for ``ready_op`` and its like."""
        self.init_op, self.init_feed_dict, self.init_fn = init_op, init_feed_dict, init_fn
        self.local_init_op, self.local_init_feed_dict = local_init_op, local_init_feed_dict
        self.summary_op, self.saver = summary_op, saver
        if copy_from_scaffold is not None:
            for name, value in vars(copy_from_scaffold).items():
                if getattr(self, name) is None:
                    setattr(self, name, value)

    def finalize(self) -> Scaffold:
        """Make what was not given."""
        with default_graph().name_scope(None):
            if self.init_op is None:
                self.init_op = group(*[v.initializer for v in global_variables()], name="init")
            if self.local_init_op is None:
                self.local_init_op = group(*[v.initializer for v in local_variables()], name="local_init")
        if self.saver is None and global_variables():
            self.saver = Saver()
        return self


class ChiefSessionCreator:
    """Makes sessions: from the last checkpoint of a folder, or from initializers."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: object = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold, self._folder, self._path = scaffold or Scaffold(), checkpoint_dir, checkpoint_filename_with_path
        self._config = config

    def create_session(self) -> Session:
        """A session whose variables have values."""
        scaffold = self._scaffold.finalize()
        session = Session(config=self._config)
        path = self._path or (latest_checkpoint(self._folder) if self._folder else None)
        if path is not None and scaffold.saver is not None:
            scaffold.saver.restore(session, path)
        else:
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None:
                scaffold.init_fn(scaffold, session)
        session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
        return session


class _StepContext(NamedTuple):
    """What the function of ``run_step_fn`` is given."""

    session: object
    owner: Any

    def run_with_hooks(self, *args: object, **kwargs: object) -> Any:
        return self.owner.run(*args, **kwargs)

    def request_stop(self) -> None:
        """Leave the function, and the block of the session, as at the end of a data set."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class MonitoredSession:
    """A session with hooks: ``while not session.should_stop(): session.run(train_op)``.

    At the end of a data set or queue it stops, and leaves its ``with`` block as if that were over.
    """

    def __init__(
        self, session_creator: Any = None, hooks: Sequence[Any] | None = None, stop_grace_period_secs: float = 120
    ) -> None:
        self._hooks = list(hooks or ())
        self._grace = stop_grace_period_secs
        self.graph = default_graph()
        for hook in self._hooks:
            hook.begin()
        creator = session_creator or ChiefSessionCreator()
        self._session = creator.create_session()
        self._coordinator = Coordinator()
        self._threads = start_queue_runners(self._session, self._coordinator)
        self._was_finalized = self.graph.finalized
        self.graph.finalize()
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)

    def run(self, fetches: object, feed_dict: Any = None, options: object = None, run_metadata: object = None) -> Any:
        """As ``Session.run``, with the hooks around it.  Raises RuntimeError once the session is closed."""
        if self._session is None:
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict, options), self._session)
        asked = [(hook, hook.before_run(context)) for hook in self._hooks]
        feeds = dict(feed_dict or {})
        wanted: dict[Any, Any] = {}
        for number, (_, more) in enumerate(asked):
            if more is not None:
                twice = [key for key in more.feed_dict or () if key in feeds]
                if twice:
                    raise RuntimeError(f"Same tensor is fed by a SessionRunHook and user, or by two hooks: {twice}")
                feeds.update(more.feed_dict or {})
                if more.fetches is not None:
                    wanted[number] = more.fetches
        fetched = self._session.run({"caller": fetches, **{str(k): v for k, v in wanted.items()}}, feeds)
        for number, (hook, _) in enumerate(asked):
            hook.after_run(context, SessionRunValues(fetched.get(str(number)), options, run_metadata))
        if context.stop_requested:
            self._coordinator.request_stop()
        return fetched["caller"]

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """``step_fn(step_context)``, which has the plain session.  Raises ValueError for other arguments."""
        names = [name for name in inspect.signature(step_fn).parameters if name != "self"]
        if names != ["step_context"]:
            raise ValueError(f"`step_fn` may either have one `step_context` argument, or `self` and it. Got {names}.")
        return step_fn(_StepContext(self._session, self))

    def should_stop(self) -> bool:
        return self._session is None or self._coordinator.should_stop()

    def raw_session(self) -> Session:
        """The session without hooks."""
        return self._session

    def close(self) -> None:
        """Let hooks end, and let go of all values."""
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        session = self._session
        if session is None:
            return
        try:
            if error is None or isinstance(error, (OutOfRangeError, StopIteration)):
                for hook in self._hooks:
                    hook.end(session)
        finally:
            self._session = None
            if not self._was_finalized:
                self.graph.unfinalize()
            self._coordinator.request_stop()
            try:
                self._coordinator.join(self._threads, self._grace, ignore_live_threads=True)
            finally:
                session.close()

    def __enter__(self) -> MonitoredSession:
        self._opened = [self.graph.as_default(), self._session.as_default()]
        for scope in self._opened:
            scope.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        for scope in reversed(self._opened):
            scope.__exit__(None, None, None)
        self._close(error)
        return isinstance(error, (OutOfRangeError, StopIteration))


class SingularMonitoredSession(MonitoredSession):
    """The same, from a folder with checkpoints."""

    def __init__(
        self,
        hooks: Sequence[Any] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: object = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, stop_grace_period_secs)


_NOT_GIVEN: object = object()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None,
    save_checkpoint_secs: object = _NOT_GIVEN,
    save_summaries_steps: object = _NOT_GIVEN,
    save_summaries_secs: object = _NOT_GIVEN,
    config: object = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: object = _NOT_GIVEN,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A session for training: it goes on from the last checkpoint in a folder, saves there every 10 minutes and
    writes summaries every 100 steps, if nothing else is said."""
    scaffold = scaffold or Scaffold()
    all_hooks: list[Any] = [*(hooks or ()), *(chief_only_hooks or ())]
    if log_step_count_steps and get_global_step() is not None:
        all_hooks.append(StepCounterHook(log_step_count_steps))
    seconds, steps = _chosen(save_summaries_secs, save_summaries_steps, None, 100)
    folder = summary_dir or checkpoint_dir
    if folder and (seconds or steps):
        all_hooks.append(SummarySaverHook(steps, seconds, folder, scaffold=scaffold, summary_op=scaffold.summary_op))
    seconds, steps = _chosen(save_checkpoint_secs, save_checkpoint_steps, 600, None)
    if checkpoint_dir and (seconds or steps):
        all_hooks.append(CheckpointSaverHook(checkpoint_dir, seconds, steps, scaffold=scaffold))
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _chosen(seconds: object, steps: object, usual_seconds: object, usual_steps: object) -> tuple[Any, Any]:
    if seconds is _NOT_GIVEN and steps is _NOT_GIVEN:
        return usual_seconds, usual_steps
    seconds, steps = (None if x is _NOT_GIVEN else x for x in (seconds, steps))
    return (None, steps) if steps else (seconds, None)


NAMES: dict[str, Any] = {
    thing.__name__: thing
    for thing in (
        SessionRunArgs, SessionRunValues, SessionRunContext, SessionRunHook, SecondOrStepTimer, StopAtStepHook,
        NanLossDuringTrainingError, NanTensorHook, LoggingTensorHook, StepCounterHook, CheckpointSaverHook,
        CheckpointSaverListener, SummarySaverHook, FinalOpsHook, FeedFnHook, Scaffold, ChiefSessionCreator,
        MonitoredSession, SingularMonitoredSession, MonitoredTrainingSession,
    )
}  # fmt: skip
__all__ = ["NAMES"]
