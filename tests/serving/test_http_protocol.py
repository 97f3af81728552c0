"""What comes before a body: its size and its time have limits, whole requests pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("httptools")

from hybridflow.serving import http_protocol  # noqa: E402


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False
        self.writes = 0

    def write(self, data: Any) -> None:
        self.written += bytes(data)
        self.writes += 1

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class _Timer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call, self.cancelled = call, False

    def cancel(self) -> None:
        self.cancelled = True


async def _application(scope: Any, receive: Any, send: Any) -> None:
    size = 0
    while True:
        message = await receive()
        size += len(message["body"])
        if not message["more_body"]:
            break
    text = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


def _talk(*parts: bytes, late: bool = False) -> tuple[_Transport, list[_Timer]]:
    """What is written when these parts come, and the timers of heads; ``late``: each that still runs goes off."""

    async def talk() -> tuple[_Transport, list[_Timer]]:
        from uvicorn.server import ServerState

        transport, timers = _Transport(), []
        config = uvicorn.Config(_application, http=http_protocol.http_protocol(), lifespan="off", log_level="error")
        config.load()
        state = ServerState()
        protocol = config.http_protocol_class(config=config, server_state=state, app_state={})
        loop = protocol.loop

        class Loop:
            def call_later(self, delay: float, function: Any, *args: Any) -> Any:
                if delay != http_protocol.HEAD_SECONDS:
                    return loop.call_later(delay, function, *args)
                timers.append(_Timer(lambda: function(*args)))
                return timers[-1]

            def __getattr__(self, name: str) -> Any:
                return getattr(loop, name)

        protocol.loop = Loop()
        protocol.connection_made(transport)
        for part in parts:
            protocol.data_received(part)
            while state.tasks:
                await asyncio.gather(*state.tasks)
            if transport.closed:
                break
        if late:
            for timer in timers:
                if not timer.cancelled:
                    timer.call()
        protocol.connection_lost(None)
        return transport, timers

    return asyncio.run(talk())


def test_requests_pass_one_after_the_other_however_long_their_bodies() -> None:
    body = b"x" * (3 * http_protocol.MAX_HEAD)
    request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    transport, timers = _talk(request, request[:20], request[20:], late=True)
    assert transport.written.count(b"200 OK") == 2 and transport.written.count(str(len(body)).encode()) == 2
    assert b"431" not in transport.written and b"408" not in transport.written
    assert transport.writes == 2  # each answer at once, head and body
    assert len(timers) == 2 and all(timer.cancelled for timer in timers)


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET / HTTP/1.1\r\n", *[b"a%d: %s\r\n" % (n, b"x" * 1000) for n in range(100)]],
        [b"GET / HTTP/1.1\r\nhost: ", *[b"x" * 1000] * 100],
        [b"GET /", *[b"x" * 1000] * 100],
        [b"\r\n" * 50_000],
    ],
    ids=["many", "long", "address", "nothing"],
)
def test_heads_that_do_not_end_are_refused(parts: list[bytes]) -> None:
    transport, _ = _talk(*parts)
    assert transport.closed and (b"431" in transport.written or b"400" in transport.written)


@pytest.mark.parametrize("part", [b"", b"GET / HTTP/1.1\r\nhost: a\r\n"], ids=["nothing", "half"])
def test_heads_that_take_too_long_are_refused(part: bytes) -> None:
    transport, _ = _talk(*[part][: len(part)], late=True)
    assert transport.closed and b"408" in transport.written


def test_the_head_of_an_answer_whose_body_comes_later_is_sent_before() -> None:
    async def told() -> list[bytes]:
        transport = _Transport()
        joined = http_protocol.JoinedWrites(transport, asyncio.get_running_loop())
        seen = []
        for parts in ((b"HTTP/1.1 200 OK\r\n\r\n", b"one"), (b"two",), (b"HTTP/1.1 204 No Content\r\n\r\n",)):
            for part in parts:
                joined.write(part)
            seen.append(transport.written)
            await asyncio.sleep(0)
        seen.append(transport.written)
        joined.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        joined.close()
        assert joined.is_closing() and transport.writes == 4
        return [*seen, transport.written]

    first, second, held, sent, closed = asyncio.run(told())
    assert first.endswith(b"\r\n\r\none") and second == first + b"two" and held == second
    assert sent.endswith(b"204 No Content\r\n\r\n") and closed.endswith(b"400 Bad Request\r\n\r\n")
