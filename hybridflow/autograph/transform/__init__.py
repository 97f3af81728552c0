"""Converted code: functions with calls of hooks wherever a tensor may decide or something is read."""
