"""Threads that work on programs side by side: how many there should be, and the native code that they run."""
