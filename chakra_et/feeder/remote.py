"""The service over gRPC, and its client. Needs the extra: pip install 'chakra-et[grpc]'."""

from __future__ import annotations

import ipaddress
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc

from chakra_et.converters.et.wire import WireError
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.feeder import Source
from chakra_et.feeder.frames import fields
from chakra_et.feeder.messages import Reply, Request
from chakra_et.feeder.options import Options
from chakra_et.feeder.session import Limits, Session

SERVICE: Final = "chakra_et.feeder.v1.Feeder"
HEALTH: Final = "grpc.health.v1.Health"
_SERVING: Final = b"\x08\x01"


class Server:
    """Serves the ranks of a trace to several clients. Loopback only, unless `public`."""

    def __init__(
        self,
        sources: Mapping[int, Source],
        address: str = "127.0.0.1:0",
        *,
        options: Options | None = None,
        limits: Limits | None = None,
        public: bool = False,
    ) -> None:
        if not public and not _is_loopback(address):
            raise FeederError(
                Code.INVALID_OPTION,
                f"{address} can be reached from other machines, and there is no authentication",
                remedy="Use a loopback address, or pass --public.",
            )
        self._sources = sources
        self._options = options or Options()
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._open = 0
        self._server = grpc.server(
            ThreadPoolExecutor(self._limits.sessions + 2, "chakra-feeder"),
            handlers=[self._feeder_handlers(), self._health_handlers()],
            options=[
                ("grpc.max_receive_message_length", self._limits.request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 20_000),
                ("grpc.keepalive_timeout_ms", 10_000),
            ],
        )
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise FeederError(Code.IO, f"cannot listen at {address}: {error}") from None
        host = address.rpartition(":")[0]
        self.address = address if address.startswith("unix:") else f"{host}:{self.port}"

    @property
    def sessions(self) -> int:
        """How many sessions are open."""
        return self._open

    def start(self) -> None:
        """Answer from now on."""
        self._server.start()

    def wait(self) -> None:
        """Return when the server has been stopped."""
        self._server.wait_for_termination()

    def stop(self, grace_s: float = 1.0) -> None:
        """Refuse new sessions, and end those that are open after a while."""
        self._server.stop(grace_s).wait()

    def _feeder_handlers(self) -> Any:
        feed = grpc.stream_stream_rpc_method_handler(
            self._feed, request_deserializer=bytes, response_serializer=Reply.encode
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Feed": feed})

    def _health_handlers(self) -> Any:
        check = grpc.unary_unary_rpc_method_handler(
            self._check_health, request_deserializer=bytes, response_serializer=bytes
        )
        return grpc.method_handlers_generic_handler(HEALTH, {"Check": check})

    def _check_health(self, request: bytes, context: Any) -> bytes:
        """grpc.health.v1: one field in, the name of the service; one out, the status."""
        try:
            names = [request[at:end] for number, _, at, end in fields(request, 0, len(request))]
        except WireError:
            names = [b"?"]
        if names and names[-1].decode("utf-8", "replace") != SERVICE:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return _SERVING

    def _feed(self, requests: Iterator[bytes], context: Any) -> Iterator[Reply]:
        """One session: a reply for each request, until the client is gone or out of time."""
        with self._lock:
            full = self._open >= self._limits.sessions
            self._open += not full
        if full:
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._limits.sessions} sessions are open already",
            )
        watch = _Watch(context, self._limits)
        try:
            session = Session(self._sources, self._options, self._limits)
            for data in requests:
                watch.touch()
                try:
                    request = Request.decode(data)
                except WireError as error:
                    said = f"the request is not a message: {error}"
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, said)
                yield session.answer(request)
                watch.touch()
        finally:
            watch.stop()
            with self._lock:
                self._open -= 1


class _Watch:
    """Cancels a session that says nothing for too long, or that lasts too long."""

    def __init__(self, context: Any, limits: Limits) -> None:
        self._context = context
        self._limits = limits
        self._end = time.monotonic() + limits.session_s
        self._heard = time.monotonic()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="chakra-feeder-watch").start()

    def touch(self) -> None:
        """The client is there."""
        self._heard = time.monotonic()

    def stop(self) -> None:
        """The session is over."""
        self._stopped.set()

    def _run(self) -> None:
        while True:
            rest = min(self._heard + self._limits.idle_s, self._end) - time.monotonic()
            if rest <= 0:
                self._context.cancel()
                return
            if self._stopped.wait(rest):
                return


def _is_loopback(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class GrpcChannel:
    """A session with a server; `timeout_s` is its deadline, None for none."""

    def __init__(self, address: str, timeout_s: float | None = None) -> None:
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1)]
        )
        call = self._channel.stream_stream(
            f"/{SERVICE}/Feed", request_serializer=Request.encode, response_deserializer=bytes
        )
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._replies: Any = call(iter(self._requests.get, None), timeout=timeout_s)

    def send(self, request: Request) -> None:
        """Send a request."""
        self._requests.put(request)

    def receive(self) -> Reply:
        """Wait for the next reply. Raises FeederError when the server is gone or refuses."""
        try:
            data = next(self._replies)
        except StopIteration:
            raise FeederError(Code.IO, "the server has ended the session") from None
        except grpc.RpcError as error:
            status = error.code().name
            said = error.details()
            raise FeederError(Code.IO, f"the server says {status}: {said}") from None
        return Reply.decode(data)

    def close(self) -> None:
        """End the session."""
        self._requests.put(None)
        self._replies.cancel()
        self._channel.close()


def is_healthy(address: str, timeout_s: float = 2.0) -> bool:
    """Whether a server answers at `address`."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            f"/{HEALTH}/Check", request_serializer=bytes, response_deserializer=bytes
        )
        try:
            return bool(check(b"", timeout=timeout_s) == _SERVING)
        except grpc.RpcError:
            return False
