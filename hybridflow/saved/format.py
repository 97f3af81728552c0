"""What is said of a file of functions: its kind, the version of its format, and who wrote it."""

from __future__ import annotations

from hybridflow.flags import RELEASE

KIND = "hybridflow-saved"
VERSION = 2  # of the format: higher where older readers would not understand, or misunderstand, what is written
WITH_CONDITIONS = 2  # the version since which graphs say for which open extents they are
WRITER = f"hybridflow {RELEASE}"
DEFAULT = "serving_default"
