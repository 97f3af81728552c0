"""What is answered where a request cannot be served: a status of HTTP, and a sentence."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        text: what is wrong with it.
        retry: after how many seconds it may be sent again, where that helps.
    """

    def __init__(self, status: int, text: str, retry: int | None = None) -> None:
        super().__init__(text)
        self.status, self.retry = status, retry
