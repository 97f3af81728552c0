"""What functions do besides making results, at once or when the program that they are traced into runs."""

__traits__ = ("between",)
