"""Compiled functions: what the decorator makes of a Python function."""
