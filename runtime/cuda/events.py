"""Events: what says that a GPU has come to a place of a stream, and how the host waits for that."""

from __future__ import annotations

import time
from typing import Any

from hybridflow.runtime.cuda.driver import NO_TIMING, NOT_READY, Driver, failure

SPINS = 200  # questions, of a microsecond each, before the host sleeps between two
LONGEST = 1e-3  # seconds of such a sleep


class Events:
    """Events of one GPU, kept for reuse: making one takes as long as a launch."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[int] = []

    def recorded(self, stream: int) -> int:
        """An event at the present end of a stream."""
        event = self.take()
        try:
            self._driver.call("cuEventRecord", event, stream)
        except BaseException:
            self._free.append(event)
            raise
        return event

    def take(self) -> int:
        try:
            return self._free.pop()
        except IndexError:
            return self._driver.made("cuEventCreate", NO_TIMING)

    def give(self, event: int) -> None:
        """Have back an event for which nobody waits any more."""
        self._free.append(event)

    def is_over(self, event: int) -> bool:
        """Whether the GPU has come to an event.  Raises DeviceError where it has failed."""
        status = self._driver.status("cuEventQuery", event)
        if status not in (0, NOT_READY):
            raise failure(status, "waiting for the GPU")
        return not status

    def wait(self, event: int) -> None:
        """Wait for an event.  Handlers of signals run meanwhile, and what they raise ends the wait; the GPU goes on."""
        pause, asked = 1e-5, 0
        while not self.is_over(event):
            asked += 1
            if asked > SPINS:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST)


def follow(driver: Driver, events: Events, stream: int, after: Any) -> None:
    """Let what is put on ``stream`` from now on run after all that is on another one."""
    event = events.recorded(after)
    driver.call("cuStreamWaitEvent", stream, event, 0)
    events.give(event)  # the wait is for what it stands for now
