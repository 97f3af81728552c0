"""What callbacks are told by loops of one's own, and what they tell servers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib import parse

import pytest

import hybridflow as hf


class _Notes(hf.callbacks.Callback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.told.append(logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.told.append((epoch, logs))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.told.append((batch, logs))

    def on_predict_end(self, logs: Any = None) -> None:
        self.told.append(logs)


def test_lists_of_callbacks_pass_on_what_they_are_given() -> None:
    notes = _Notes()
    told = hf.callbacks.CallbackList([notes])
    told.on_train_begin({"a": 1})
    told.on_epoch_begin(2, {"b": 2})
    told.on_train_batch_begin(3, {"c": 3})
    told.on_train_batch_begin(4)
    told.on_predict_begin()
    told.on_predict_end({"d": 4})
    assert notes.told == [{"a": 1}, (2, {"b": 2}), (3, {"c": 3}), (4, {}), {"d": 4}]


@pytest.fixture
def server() -> Iterator[tuple[str, list[bytes], list[bytes]]]:
    """An address, what was sent there, and the answers that are given, one after the other."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(300)
    got: list[bytes] = []
    answers: list[bytes] = []

    def serve() -> None:
        while answers:
            with listening.accept()[0] as there:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += there.recv(65536)
                head, _, body = asked.partition(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                while len(body) < size:
                    body += there.recv(65536)
                got.append(body)
                there.sendall(answers.pop(0))

    answers += [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"this is no HTTP\r\n\r\n"]
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", got, answers
    thread.join(300)
    listening.close()


def test_monitors_send_logs_and_warn_where_the_answer_is_none(server: tuple[str, list[bytes], list[bytes]]) -> None:
    root, got, _ = server
    monitor = hf.callbacks.RemoteMonitor(root)
    monitor.on_epoch_end(3, {"loss": hf.asarray(0.5)})
    assert json.loads(parse.parse_qs(got[0].decode())["data"][0]) == {"epoch": 3, "loss": 0.5}
    with pytest.warns(UserWarning, match="could not reach the server"):
        monitor.on_epoch_end(4)
