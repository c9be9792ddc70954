"""The server itself: from requests to sessions, each bounded in size, time and rate, each refusal one sentence.

Without a token only this machine's own names are answered, and what changes something must come as JSON: a page from
elsewhere in a browser can send no such thing unasked.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from omdpd.play.episodes import EpisodeConflictError, UnknownEpisodeError
from omdpd.problem.arrays import InvalidInputError, shortened
from omdpd.report.connections import refused
from omdpd.report.html import filled_page, page_policy
from omdpd.serve.desk import Desk, NotDurableError, TooManyOpenError
from omdpd.serve.routes import ROUTES, Done, Health, Refusal, Route, openapi
from omdpd.storage.atomic import RecordError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# The most bytes that a request may say, and seconds from its first line to its answer.
MOST_BYTES, MOST_SECONDS = 2**20, 20.0
# Addresses whose rates are known at a time.
MOST_ADDRESSES = 1000
JSON = b"application/json"
SCRIPT = Path(__file__).parent / "page" / "session.js"


@cache
def _script() -> str:
    return SCRIPT.read_text(encoding="utf-8")


def page(title: str) -> str:
    """The page of a session, or of all of them."""
    return filled_page(title, [_script()], live=True)


def page_headers() -> tuple[tuple[bytes, bytes], ...]:
    """What a browser is told about it."""
    rules = page_policy(True, [_script()]) + "; frame-ancestors 'none'"
    return (
        (b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", rules.encode()),
        (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    )  # fmt: skip


class Response(NamedTuple):
    """What goes back."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", JSON),)


class RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class Rates:
    """Limits the requests of an address to `most` a second, and as many at once."""

    def __init__(self, most: float) -> None:
        self.most, self.clock = most, time.monotonic
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, address: str) -> bool:
        """Whether one more may be answered."""
        now = self.clock()
        left, last = self._left.pop(address, (self.most, now))
        left = min(left + (now - last) * self.most, self.most)
        self._left[address] = (max(left - 1.0, 0.0), now)
        if len(self._left) > MOST_ADDRESSES:
            del self._left[next(iter(self._left))]
        return left >= 1.0


class Deadlines:
    """The requests under way: one that takes too long is cancelled, by one clock for all."""

    def __init__(self) -> None:
        self._until: dict[asyncio.Task[Any], float] = {}
        self._clock: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[Any], seconds: float) -> None:
        """From now on it has as many seconds."""
        until = task.get_loop().time() + seconds
        self._until[task] = until
        if self._clock is None or until < self._clock.when():
            self._wind(until, task.get_loop())

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Whether it is done in time."""
        return self._until.pop(task, None) is not None

    def _wind(self, until: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = loop.call_at(until, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = None
        for task in [task for task, until in self._until.items() if until <= loop.time()]:
            del self._until[task]
            task.cancel()
        if self._until:
            self._wind(min(self._until.values()), loop)


class Application:
    """All sessions of a server, by their names; one alone is also asked without its name."""

    def __init__(self, desks: Mapping[str, Desk], token: str | None, hosts: list[str], rate: float) -> None:
        self.desks, self.token, self.hosts = desks, token, {name.lower() for name in hosts}
        self.rates, self.seconds, self._deadlines = Rates(rate), MOST_SECONDS, Deadlines()
        self.document = msgspec.json.encode(openapi(list(desks)))
        self._exact = {(route.method, route.path): route for route in ROUTES}
        self._paths = {route.path for route in ROUTES}
        self._looking: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the beginning and the end of the server."""
        if scope["type"] == "lifespan":
            await self._life(receive, send)
        elif scope["type"] == "http":
            answer = await self._answered(scope, receive)
            headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            body = b"" if scope["method"] == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body})

    async def _life(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                loop = asyncio.get_running_loop()
                for desk in self.desks.values():
                    desk.start(loop)
                    self._looking.append(loop.create_task(desk.look()))
                await send({"type": "lifespan.startup.complete"})
            else:
                for task in self._looking:
                    task.cancel()
                for desk in self.desks.values():
                    await asyncio.to_thread(desk.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answered(self, scope: Scope, receive: Receive) -> Response:
        task = asyncio.current_task()
        assert task is not None
        self._deadlines.begin(task, self.seconds)
        try:
            return await self._answer_or_refuse(scope, receive)
        except asyncio.CancelledError:
            if self._deadlines.end(task) or task.uncancel():  # the server stops
                raise
            return _refusal(408, "The request took too long: send it again.", (b"connection", b"close"))
        finally:
            self._deadlines.end(task)

    async def _answer_or_refuse(self, scope: Scope, receive: Receive) -> Response:
        try:
            return await self._answer(scope, receive)
        except RefusedError as error:
            return _refusal(error.status, str(error), *error.headers)
        except UnknownEpisodeError as error:
            return _refusal(404, str(error))
        except TooManyOpenError as error:
            return _refusal(429, str(error))
        except EpisodeConflictError as error:
            return _refusal(409, str(error))
        except (RecordError, NotDurableError, OSError) as error:
            return _refusal(503, f"The session cannot be written: {error}")
        except InvalidInputError as error:
            return _refusal(422, str(error))

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        headers = dict(scope["headers"])
        self._check(scope, headers)
        desk, path, id = self._place(scope["path"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path in ("", "/openapi.json", "/sessions") and method == "GET":
            return self._about(path, desk)
        if path not in self._paths:
            raise RefusedError(404, f"there is nothing at {shortened(scope['path'])!r}: see /openapi.json")
        route = self._exact.get((method, path))
        if route is None:
            known = ", ".join(each.method for each in ROUTES if each.path == path)
            raise RefusedError(405, f"{path} takes {known}", (b"allow", known.encode()))
        if desk is None:
            names = ", ".join(self.desks)
            raise RefusedError(404, f"say which session is meant: /sessions/NAME{path}, with a NAME of {names}")
        if desk.reads and path not in ("/status", "/health"):
            raise RefusedError(405, "this server only shows a session: omdpd serve has one that takes part")
        said = None if route.says is None else await _said(route.says, headers, receive)
        return await self._done(route, desk, id, said, headers)

    async def _done(self, route: Route, desk: Desk, id: str, said: Any, headers: dict[bytes, bytes]) -> Response:
        if route.slow or getattr(said, "initial", None) is not None:  # a law of first states is planned for
            done = await asyncio.to_thread(route.do, desk, id, said)
        else:
            done = route.do(desk, id, said)
        if route.durable:
            await desk.durable()
        body = msgspec.json.encode(Done(desk.session.episodes) if done is None else done)
        if isinstance(done, Health):
            return Response(200 if done.ok else 503, body)
        if route.path != "/policy":
            return Response(200, body)
        tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        known = [each.strip().removeprefix(b"W/") for each in headers.get(b"if-none-match", b"").split(b",")]
        if tag in known or b"*" in known:
            return Response(304, b"", ((b"etag", tag),))
        return Response(200, body, ((b"content-type", JSON), (b"etag", tag)))

    def _about(self, path: str, desk: Desk | None) -> Response:
        if path == "/openapi.json":
            return Response(200, self.document)
        if path == "/sessions":
            return Response(200, msgspec.json.encode(list(self.desks)))
        return Response(200, page("omdpd" if desk is None else desk.name).encode(), page_headers())

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse who is not let in, or asks too often."""
        host = headers.get(b"host", b"").decode("latin-1")
        given = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
        if self.token is not None and not given:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if wrong := refused(host, self.hosts, given, self.token):
            raise RefusedError(*wrong)
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2].lower() != host.lower():
            raise RefusedError(403, "pages from elsewhere may not ask this server")
        if not self.rates.take((scope.get("client") or ("",))[0]):
            raise RefusedError(429, f"more than {self.rates.most:g} requests a second: wait", (b"retry-after", b"1"))

    def _place(self, path: str) -> tuple[Desk | None, str, str]:
        """The session that a path is about, the path of a route, and the id in it."""
        parts = path.strip("/").split("/")
        desk = next(iter(self.desks.values())) if len(self.desks) == 1 else None
        if parts[0] == "sessions" and len(parts) > 1:
            desk = self.desks.get(parts[1])
            if desk is None:
                raise RefusedError(
                    404, f"there is no session {shortened(parts[1])!r}; there are {', '.join(self.desks)}"
                )
            parts = parts[2:] or [""]
        if parts[0] == "episodes" and len(parts) > 1:
            return desk, "/".join(["/episodes/{id}", *parts[2:]]), parts[1]
        return desk, "" if parts == [""] else f"/{'/'.join(parts)}", ""


async def _said(kind: type[Any], headers: dict[bytes, bytes], receive: Receive) -> Any:
    """What a request says, as a value of its kind."""
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != JSON:
        raise RefusedError(415, "what is sent must be JSON: say Content-Type: application/json")
    pieces, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection ended before the request did")
        pieces.append(message.get("body", b""))
        size, more = size + len(pieces[-1]), message.get("more_body", False)
        if size > MOST_BYTES:
            raise RefusedError(413, f"a request may have {MOST_BYTES} bytes", (b"connection", b"close"))
    try:
        return msgspec.json.decode(b"".join(pieces) or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise RefusedError(422, shortened(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(400, f"what was sent is not JSON: {shortened(str(error))}") from None


def _refusal(status: int, sentence: str, *headers: tuple[bytes, bytes]) -> Response:
    text = " ".join(sentence.split()) or HTTPStatus(status).phrase
    return Response(status, msgspec.json.encode(Refusal(text)), ((b"content-type", JSON), *headers))
