"""A step of all processes, and an end as the arguments say: run by test_cluster.py."""

import os
import signal
import sys
from pathlib import Path

import hybridflow as hf

what, folder = sys.argv[1], Path(sys.argv[2])
strategy = hf.distribute.MirroredStrategy(replicas=4)
total = strategy.reduce("sum", strategy.run(lambda: hf.distribute.axis_index() + 1))
print(f"{hf.distribute.process_count()} processes, total {total.item()}", flush=True)
is_first_time = not (folder / "began").exists()
hf.distribute.barrier()
if hf.distribute.process_index() == 1 and is_first_time and what != "whole":
    (folder / "began").touch()
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raises":
        raise ValueError("on rank 1")
    if what == "lost":  # with the actor beside it
        os.kill(os.getppid(), signal.SIGKILL)
hf.distribute.barrier()
print("done", flush=True)
