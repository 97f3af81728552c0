"""What measures hybridflow: scripts for single questions, and the suite, ``python -m benchmarks.suite``."""
