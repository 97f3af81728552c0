"""The one place where what others wrote is read: whatever goes wrong there is an error of the file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from hybridflow.errors import HybridflowError

CONTENT_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, RuntimeError, StopIteration, TypeError),
    *(ValueError, struct.error, zlib.error),
)


@contextmanager
def reading(kind: type[HybridflowError], stage: str, what: object, *passed: type[Exception]) -> Iterator[None]:
    """Within this, what is raised of damaged bytes is a ``kind``, which names the file; but for ``passed`` errors.

    Errors of the system, such as a file that is not there, and MemoryError stay what they are.  Those without a number
    are none of its: h5py has them for damaged files.
    """
    try:
        yield
    except passed:
        raise
    except kind as error:
        if str(what) in str(error):
            raise
        raise kind(stage, f"{what} cannot be read: {error}") from None
    except (HybridflowError, OSError, *CONTENT_ERRORS) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text = " ".join(str(error).split())[:300]
        raise kind(stage, f"{what} cannot be read: {type(error).__name__}: {text}. The file is damaged.") from None
