"""Compiled functions: what the decorator makes of a Python function."""

__traits__ = ("between",)
