"""Connections to a server of ours: bounded in number and time, from other machines only with a token."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from omdpd.problem.arrays import InvalidInputError

# Seconds in which a request must have said what it wants, and in which somebody must begin to take an answer.
HEADER_SECONDS, TAKE_SECONDS = 10.0, 10.0
# Connections that are open at a time, and bytes before a request is understood.
MAX_CONNECTIONS, MAX_HEAD = 100, 2**16
REFUSED = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
TOO_MANY = b"503 Service Unavailable", b'{"error":"Too many connections are open: ask again later."}'
TOO_LONG = b"431 Request Header Fields Too Large", b'{"error":"The head of the request is too long."}'


def admitted(address: str, port: int, public: bool, names: Sequence[str]) -> tuple[str | None, list[str]]:
    """The token that every request must carry, if there is one, and the names of a server; refuses a careless one."""
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"--port is {port}, but must be between 0 and 65535")
    if not loopback(address) and not public:
        raise InvalidInputError(f"{address} can be reached from other machines: say --public if that is wanted")
    return secrets.token_urlsafe(24) if public else None, [*known_hosts(address), *names]


def refused(host: str, known: Collection[str], given: str, token: str | None) -> tuple[int, str] | None:
    """Why a request to a host with a token is not answered: status and sentence."""
    host = host.lower()
    if (host if host.endswith("]") else host.rsplit(":", 1)[0]) not in known:
        return 421, "This server is not known by that name."
    if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
        return 403, "The token is missing or wrong: take it from what the server printed when it started."
    return None


def url_of(listener: socket.socket, hosts: Sequence[str], token: str | None) -> str:
    """Where a server is asked."""
    return f"http://{hosts[0]}:{listener.getsockname()[1]}/{'' if token is None else f'?token={token}'}"


def run_bounded(application: Any, listener: socket.socket, patience: int) -> None:
    """Answer requests until the process is told to stop; then the open ones have as many seconds."""
    config = Config(
        application, http=fastest(), ws="none", log_level="error", access_log=False,
        timeout_graceful_shutdown=patience,
    )  # fmt: skip
    Server(config).run(sockets=[listener])


class Joined:
    """A transport that sends the head and the body of an answer together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.bare, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)

    def write(self, data: bytes) -> None:
        """Send it with what comes next, and at the latest when the loop comes round."""
        if not self._pieces:
            self._loop.call_soon(self.send)
        self._pieces.append(data)

    def send(self) -> None:
        """Send what is there."""
        if self._pieces:
            self.bare.write(b"".join(self._pieces))
            self._pieces.clear()

    def close(self) -> None:
        """Send what is there, then no more."""
        self.send()
        self.bare.close()


class Bounds(asyncio.Protocol):
    """A connection that is closed if it is one too many, says too much, or does not speak or listen in time."""

    loop: asyncio.AbstractEventLoop
    connections: Any
    transport: Any
    cycle: Any
    late: asyncio.TimerHandle | None = None
    deaf: asyncio.TimerHandle | None = None
    unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, while there are not too many."""
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(0)  # whatever is not taken is waited for
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(*TOO_MANY)
        self._hurry(waiting=True)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        before = self.cycle
        in_body = before is not None and before.more_body and not before.response_complete
        super().data_received(data)
        self.unread = 0 if in_body or self.cycle is not before else self.unread + len(data)
        if self.unread > MAX_HEAD:
            self._refuse(*TOO_LONG)
        self._hurry(waiting=self.cycle is None or self.cycle.response_complete)

    def on_response_complete(self) -> None:
        """Send an answer as soon as it is whole."""
        self.transport.send()
        super().on_response_complete()  # type: ignore[misc]

    def pause_writing(self) -> None:
        """Give a client that does not read its answer some seconds more."""
        super().pause_writing()
        self.deaf = self.loop.call_later(TAKE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it was taken."""
        if self.deaf is not None:
            self.deaf.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        self._hurry(waiting=False)
        if self.deaf is not None:
            self.deaf.cancel()
        super().connection_lost(exc)

    def _refuse(self, status: bytes, body: bytes) -> None:
        """Say why, and close."""
        if not self.transport.is_closing():
            self.transport.write(REFUSED % (status, len(body), body))
            self.transport.close()

    def _hurry(self, waiting: bool) -> None:
        """While a request is waited for, let a clock run that no further piece of it sets back."""
        if waiting and self.late is None:
            self.late = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        elif not waiting and self.late is not None:
            self.late.cancel()
            self.late = None


class BoundedHTTP(Bounds, H11Protocol):
    """A bounded connection that takes whatever HTTP/1.1 has."""


def fastest() -> type[asyncio.Protocol]:
    """The fastest kind of connection that is installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return BoundedHTTP

    class FastHTTP(Bounds, HttpToolsProtocol):
        """A bounded connection that is twice as fast; one that offers to change to HTTP/2 goes on as the other kind.

        Java offers that with every request, and what such a request says would be lost.
        """

        head = b""

        def data_received(self, data: bytes) -> None:
            """Take a piece of a request; of the first one, its whole head."""
            if self.cycle is None:
                self.head = data = self.head + data
                if b"\r\n\r\n" not in data and len(data) <= MAX_HEAD:
                    return
                if b"\nupgrade:" in data.lower():
                    self._hand_over(data)
                    return
            super().data_received(data)

        def on_headers_complete(self) -> None:
            """Refuse an offer that comes later."""
            if self.parser.should_upgrade():
                raise ValueError("a connection that began as HTTP/1.1 stays so")
            super().on_headers_complete()

        def _hand_over(self, data: bytes) -> None:
            self._hurry(waiting=False)
            self.connections.discard(self)
            other = BoundedHTTP(self.config, self.server_state, self.app_state, self.loop)
            self.transport.set_protocol(other)
            other.connection_made(self.transport.bare)
            other.data_received(data)

    return FastHTTP


def loopback(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> loopback("127.0.0.1"), loopback("localhost"), loopback("0.0.0.0")
    (True, True, False)
    """
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def known_hosts(address: str) -> list[str]:
    """The names under which a server at an address may be asked for, the best one first.

    >>> known_hosts("127.0.0.1")
    ['127.0.0.1', 'localhost', '[::1]']
    """
    if loopback(address):
        return list(dict.fromkeys([_in_brackets(address), "127.0.0.1", "localhost", "[::1]"]))
    if address not in ("0.0.0.0", "::"):
        return [_in_brackets(address).lower()]
    own = socket.gethostname()
    with suppress(OSError):
        found = [str(known[4][0]) for known in socket.getaddrinfo(own, None)]
        return list(dict.fromkeys([own.lower(), *map(_in_brackets, found), "127.0.0.1", "localhost", "[::1]"]))
    return [own.lower(), "127.0.0.1", "localhost", "[::1]"]


@contextmanager
def listening(address: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; a port that is taken is refused with a sentence."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        made = socket.create_server((address, port), family=family)
    except OSError as error:
        raise InvalidInputError(f"cannot listen at {address}, port {port}: {error.strerror}") from None
    with made:
        yield made


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address
