"""What a traced function reads from outside: recorded while it is traced, and guarded from then on."""

__traits__ = ("between", "records")
