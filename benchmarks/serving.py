"""A server of models over loopback: times of single requests, and answers per second with and without batches.

    unshare -rn sh -c 'ip link set lo up && python benchmarks/serving.py'

Each server runs in a process of its own; rounds of them are interleaved.  Prints medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

SMALL, WIDE = (64, 128, 128, 10), (784, 2048, 2048, 10)


def _save(widths: tuple[int, ...], path: str) -> None:
    import hybridflow as hf

    layers = [hf.layers.Dense(width, "relu") for width in widths[1:-1]]
    hf.saved.save(hf.Sequential([hf.Input((widths[0],)), *layers, hf.layers.Dense(widths[-1])]), path)


def _request(width: int, name: str) -> bytes:
    x = np.random.default_rng(0).normal(size=(1, width)).astype(np.float32)
    entry = {"name": name, "shape": [1, width], "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    head = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    body = head + x.tobytes()
    lines = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(head)}\r\n"
    return f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _answered(connection: socket.socket) -> None:
    """Read one answer."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(1 << 16)
    head, _, rest = content.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), content[:200]
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(rest) < length:
        rest += connection.recv(1 << 16)


def _single(port: int, request: bytes, count: int) -> float:
    """The median time of a request on one connection, in ms."""
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            begin = time.perf_counter()
            connection.sendall(request)
            _answered(connection)
            times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times[count // 10 :])


def _rate(port: int, request: bytes, connections: int, seconds: float) -> float:
    """Answers per second on many connections."""
    counts = [0] * connections
    until = time.perf_counter() + seconds

    def ask(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            while time.perf_counter() < until:
                connection.sendall(request)
                _answered(connection)
                counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(connections)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def _ready(port: int) -> None:
    import hybridflow as hf

    client = hf.serving.Client(f"http://127.0.0.1:{port}")
    while not client.is_ready():
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers: list[subprocess.Popen[bytes]] = []
        ports = {}
        try:
            for number, (name, widths, batch) in enumerate(
                (("small", SMALL, 64), ("wide, alone", WIDE, 1), ("wide, batches", WIDE, 64))
            ):
                path = os.path.join(folder, name)
                _save(widths, path)
                ports[name] = 8130 + number, _request(widths[0], "inputs")
                command = [sys.executable, "-m", "hybridflow", "serve", f"m={path}", "--port", str(8130 + number)]
                servers.append(subprocess.Popen([*command, "--max-batch", str(batch)], stdout=subprocess.DEVNULL))
            for port, _ in ports.values():
                _ready(port)
            single, rates = [], {name: [] for name in ports}
            for _ in range(options.rounds):
                single.append(_single(*ports["small"], 1000))
                for name, (port, request) in ports.items():
                    rates[name].append(_rate(port, request, options.connections, options.seconds))
        finally:
            for server in servers:
                server.kill()
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"small, one connection: p50 {statistics.median(single):.3f} ms ({min(single):.3f}..{max(single):.3f})")
    for name, found in rates.items():
        text = f"{statistics.median(found):.0f} answers/s ({min(found):.0f}..{max(found):.0f})"
        print(f"{name}, {options.connections} connections: {text}")


if __name__ == "__main__":
    main()
