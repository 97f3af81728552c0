"""The functions of arrays: those of the array API standard, and their relatives."""

__traits__ = ("quiet",)
