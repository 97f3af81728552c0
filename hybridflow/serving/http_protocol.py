"""Limits of what comes before a request's body, which uvicorn reads without any: its size, and how long it takes.

The body's limits are the application's.  The head of an answer is sent together with its body, which uvicorn sends one
after the other: that is one system call less, and the client is woken once.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

MAX_HEAD = 1 << 16  # bytes of the request line and the headers
HEAD_SECONDS = 60.0  # from the connection, or the first byte of a later request, to the end of the headers

_BEGIN = b"HTTP/1.1 "
_REFUSAL = b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class JoinedWrites:
    """A transport that keeps the head of an answer until what follows is written, or the loop of events goes on.

    Args:
        transport: the transport that sends.
        loop: the loop of events.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them where an answer begins."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif data.startswith(_BEGIN):
            self._head = data
            self._loop.call_soon(self.flush)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is kept."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Send what is kept, and close the connection."""
        self.flush()
        self._transport.close()


def http_protocol() -> Any:
    """What uvicorn is told for ``http``: its protocol on httptools with limits.  Without httptools "h11", which has a
    limit of its own."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"

    class LimitedHttpProtocol(HttpToolsProtocol):
        """Closes connections whose headers are too long, or do not end."""

        _head = 0  # bytes of the head that is being read
        _in_head = True
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(cast("Any", JoinedWrites(transport, self.loop)))
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._close, b"408 Request Timeout")

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self._head += len(data)
            super().data_received(data)
            if self._in_head and self._head > MAX_HEAD:
                self._close(b"431 Request Header Fields Too Large")

        def on_message_begin(self) -> None:
            self._in_head = True
            if self._deadline is None:
                self._deadline = self.loop.call_later(HEAD_SECONDS, self._close, b"408 Request Timeout")
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop_waiting()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._head = 0
            super().on_message_complete()

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _close(self, status: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(_REFUSAL % status)
                self.transport.close()

    return LimitedHttpProtocol
