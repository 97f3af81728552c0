"""One op at a time: the choke point that every op passes, and what runs it at once."""

__traits__ = ("between",)
