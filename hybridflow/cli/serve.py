"""``hybridflow serve MODEL...``: models over HTTP."""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any

import hybridflow as hf
from hybridflow.cli import target
from hybridflow.errors import ArgumentError

_LOCAL = "127.0.0.1"


def add_to(commands: Any) -> None:
    text = "models over HTTP: the Open Inference Protocol, version 2"
    parser = commands.add_parser("serve", help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="NAME=PATH or PATH: a file of hf.saved.save, .onnx, .keras, a folder of numbered folders, or FILE.py::f",
    )
    parser.add_argument("--host", default=_LOCAL, help=f"the address that is listened on (default: {_LOCAL})")
    parser.add_argument("--port", type=int, default=8000, help="the port (default: 8000)")
    parser.add_argument("--grpc-port", type=int, metavar="PORT", help="the port for gRPC (default: no gRPC)")
    parser.add_argument("--max-batch", type=int, default=64, metavar="ROWS", help="computed at once (default: 64)")
    parser.add_argument("--max-delay-ms", type=float, default=0.0, metavar="MS", help="waited for more (default: 0)")
    parser.add_argument("--workers", type=int, default=1, help="threads that compute, for each model (default: 1)")
    parser.add_argument(
        "--max-requests", type=int, default=1024, help="requests that are read and answered at a time (default: 1024)"
    )
    parser.add_argument("--queue", type=int, default=1024, help="requests that may wait (default: 1024)")
    parser.add_argument(
        "--max-body", type=int, default=64 << 20, metavar="BYTES", help="of a request (default: 64 MiB)"
    )
    parser.add_argument("--deterministic", action="store_true", help="compute each request by itself")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        uvicorn = importlib.import_module("uvicorn")
    except ImportError:
        raise ArgumentError("serve", "a server needs uvicorn: pip install 'hybridflow[serve]'.", "") from None
    for port in (options.port, options.grpc_port):
        if port is not None and not 0 <= port < 1 << 16:
            raise ArgumentError("serve", f"there is no port {port}; they end at 65535.", "")
    sources: dict[str, Any] = {}
    for entry in options.models:
        name, source = _source(entry)
        if name in sources:
            raise ArgumentError("serve", f"two models are called {name}: write NAME=PATH.", "")
        sources[name] = source
    application = hf.serving.app(
        sources,
        max_batch=options.max_batch,
        max_delay_ms=options.max_delay_ms,
        workers=options.workers,
        queue=options.queue,
        max_body=options.max_body,
        deterministic=options.deterministic,
        max_requests=options.max_requests,
    )
    from hybridflow.serving import protocol
    from hybridflow.serving.http_protocol import http_protocol

    at = protocol.address(options.host, options.port)
    if options.host != _LOCAL:
        print(f"[serve] everybody who reaches {at} may ask: there is no password.", flush=True)
    print(f"[serve] {', '.join(sources)} at http://{at}/v2", flush=True)
    config = uvicorn.Config(
        application,
        host=options.host,
        port=options.port,
        http=http_protocol(),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
    )
    server = uvicorn.Server(config)
    beside = None
    if options.grpc_port is not None:
        from hybridflow.serving.grpc_server import GrpcServer

        beside = GrpcServer(application, options.host, options.grpc_port)
        beside.start()
        print(f"[serve] gRPC at {protocol.address(options.host, beside.port)}", flush=True)
    try:
        server.run()
    finally:
        if beside is not None:
            beside.stop()
    return 0 if server.started else 1


def _source(text: str) -> tuple[str, Any]:
    """The name of a model, and where it comes from."""
    name, separator, path = text.partition("=")
    if not separator:
        name, path = "", text
    if "::" in path:
        function = target.load(path, "serve")
        return name or path.rpartition("::")[2].rpartition(".")[2], function
    if not os.path.exists(path):
        raise ArgumentError("serve", f"there is no {path}.", "")
    if path.endswith(".py"):
        raise ArgumentError("serve", f"{path} is source code: name one of its functions, {path}::function.", "")
    base = os.path.basename(os.path.normpath(path))
    return name or base.partition(".")[0], path
