"""Gradients of what ran: tapes, and functions with a derivative of their own."""

__traits__ = ("between",)
