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

# A request must have said what it wants after this many seconds, and so many connections are open at a time.
HEADER_SECONDS, MAX_CONNECTIONS = 10.0, 100
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


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


def run_bounded(application: Any, listener: socket.socket, patience: int) -> None:
    """Answer requests until the process is told to stop; then the open ones have as many seconds."""
    config = Config(
        application, http=BoundedHTTP, log_level="warning", access_log=False, timeout_graceful_shutdown=patience,
    )  # fmt: skip
    Server(config).run(sockets=[listener])


class BoundedHTTP(H11Protocol):
    """A connection that is closed if it is one too many, or if its request does not arrive in time."""

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, while there are not too many."""
        super().connection_made(transport)
        # Head and body are written apart: without this the second waits until the first is acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.write(TOO_MANY)
            transport.close()
        self._hurry(waiting=True)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._hurry(waiting=self.cycle is None or self.cycle.response_complete)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        self._hurry(waiting=False)
        super().connection_lost(exc)

    def _hurry(self, waiting: bool) -> None:
        """While a request is waited for, let a clock run that no further piece of it sets back."""
        if waiting and self.late is None:
            self.late = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        elif not waiting and self.late is not None:
            self.late.cancel()
            self.late = None


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
