"""Two processes of which one comes to grief at its fourth step, as the argument says: run by test_processes.py."""

import os
import signal
import sys

import numpy as np

import hybridflow as hf
from hybridflow.distribute.group import group

what, found = sys.argv[1], group()
rank = 0 if found is None else found.rank
strategy = hf.distribute.MirroredStrategy(replicas=4)
steps = hf.Variable(0)
x = np.arange(4, dtype=np.float32)


@hf.function
def step(batch):
    steps.assign_add(1)
    return strategy.reduce("sum", strategy.run(hf.distribute.all_reduce, args=(batch,)))


if what in ("killed", "raises", "exits", "waits"):  # where it makes no difference what is exchanged

    def step(batch):
        return found.exchange("step", x, "fail.py:31")


for number in range(6):
    if number == 3 and what == "stopped" and rank == 0:
        print(f"timeout {found.timeout:g}", flush=True)
        found.timeout = 3.0
    if number == 3 and rank == 1:
        match what:
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "raises":
                raise ValueError("the fourth step")
            case "exits":
                sys.exit(7)
            case "elsewhere":
                strategy.gather(strategy.distribute_batch(x))
            case "leaves":
                break
    if number == 3 and what == "waits":
        print("waiting", flush=True)
        signal.pause()
    try:
        total = step(strategy.distribute_batch(x))
    except hf.errors.ReplicaError:
        print(f"{steps.item()} steps before", flush=True)
        raise
print(total.numpy().tolist(), steps.item())
