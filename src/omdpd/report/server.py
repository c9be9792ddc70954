"""The page, live: a small server that reads a study's folder and sends what changed to its viewers.

Read-only.  Progress is looked at every second; curves and figures are worked out anew for what changed, and only as
often as a small share of one core allows, so that the study itself is not slowed down.  Parts go out as server-sent
events; a page that lost its connection asks again by itself and is sent everything.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.connections import refused
from omdpd.report.html import page, page_policy
from omdpd.report.stored import StoredRun
from omdpd.report.study import GroupKey, Study

# Seconds between two looks at the folder.
LOOK_EVERY = 1.0
# The share of one core that working out figures may take while a study runs.
MAX_SHARE = 0.01
# A line that keeps a silent connection open, in seconds.
KEEP_ALIVE = 15.0


@dataclass
class Feed:
    """The newest parts of a study, each with a version, and how they are renewed."""

    study: Study
    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    version: int = 0
    fault: str | None = None
    stale: set[str] = field(default_factory=set)
    rested: float = 0.0
    shape: list[GroupKey] = field(default_factory=list)
    going: set[str] = field(default_factory=set)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Look at the folder once: progress is renewed at once, figures are marked as stale."""
        try:
            before = self.study.views.keys()
            moved = self.study.refresh()
            shape = list(self.study.groups())
            if shape != self.shape or not self.texts or before - self.study.views.keys():
                self._begin(shape)
            self.stale.update(_touched(self.study, moved))
            going = {view.id for view in self.study.views.values() if view.recent()}
            if moved or going != self.going:
                self.going = going
                self._put({"progress": self.study.progress()})
            self.fault = None
        except (InvalidInputError, OSError) as error:
            self.fault = str(error)

    def work(self) -> bool:
        """Renew one stale part, if it is time; whether there is another that need not wait.

        What was never drawn is drawn at once.  A figure that is there already waits until the last one has been paid
        for: after t seconds of work the next renewal is t / MAX_SHARE seconds later, while runs are going.
        """
        fresh = [name for name in self.stale if name not in self.texts]
        if not self.stale or (not fresh and time.monotonic() < self.rested):
            return False
        began = time.process_time()
        sound = [view for view in self.study.views.values() if view.state != "damaged"]
        name = min(fresh or self.stale, key=lambda part: (self.versions.get(part, 0), part))
        self.stale.discard(name)
        try:
            made = {name: _part(self.study, name)}
            if not self.stale:
                made["comparison"] = self.study.comparison()
            if found := [view for view in sound if view.state == "damaged"]:  # which only its parts told
                self.stale |= _touched(self.study, found)
                made["progress"] = self.study.progress()
            self._put(made)
        except (InvalidInputError, OSError) as error:
            self.fault = str(error)
        if any(view.recent() for view in self.study.views.values()):
            self.rested = time.monotonic() + (time.process_time() - began) / MAX_SHARE
        return bool(self.stale)

    def _begin(self, shape: list[GroupKey]) -> None:
        """Other groups are there than before: parts are numbered anew, and everything is drawn again."""
        self.shape = shape
        with self.guard:
            for name in [name for name in self.texts if name[-1].isdigit()]:
                del self.texts[name], self.versions[name]
        self._put({"head": self.study.head(), "progress": self.study.progress(), "problems": self.study.problems()})
        self._put({"comparison": self.study.comparison()})
        self.stale = _touched(self.study, self.study.views.values())

    def since(self, version: int) -> tuple[dict[str, str], int]:
        """The parts that are newer than a version, and the version they make up."""
        with self.guard:
            return {name: text for name, text in self.texts.items() if self.versions[name] > version}, self.version

    def _put(self, parts: dict[str, Any]) -> None:
        for name, value in parts.items():
            text = json.dumps(value, separators=(",", ":"), allow_nan=False)
            with self.guard:
                if self.texts.get(name) != text:
                    self.version += 1
                    self.texts[name], self.versions[name] = text, self.version


def _touched(study: Study, moved: Iterable[StoredRun]) -> set[str]:
    """The parts that a commit of these runs changes."""
    ids = {view.id for view in moved}
    names = set()
    places = study.places()
    for i, (key, views) in enumerate(study.groups().items()):
        if any(view.id in ids for view in views):
            names |= {f"group-{i}", f"policies-{i}", f"place-{places.index(key[:2])}"}
    return names


def _part(study: Study, name: str) -> Any:
    kind, _, number = name.partition("-")
    if kind == "policies":
        return study.policies(int(number), study.shown_policies())
    return study.group(int(number)) if kind == "group" else study.place(int(number))


def application(folder: Path, token: str | None = None, hosts: Iterable[str] = ()) -> Starlette:
    """The server of one folder: `/` is the page, `/events` its parts.

    `hosts` are the names under which it may be asked for; another Host header is refused, so that a page from
    elsewhere cannot reach it by a name of its own.  With a token every request must carry it.
    """
    feed, bell = Feed(Study(folder, live=True)), Broadcast()
    known = {name.lower() for name in hosts}
    text = page(None, f"{folder.resolve().name}: omdpd")
    headers = {
        "Content-Security-Policy": page_policy(live=True) + "; frame-ancestors 'none'", "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }  # fmt: skip

    def refusal(request: Request) -> Response | None:
        wrong = refused(request.headers.get("host", ""), known, request.query_params.get("token", ""), token)
        return None if wrong is None else PlainTextResponse(f"{wrong[1]}\n", wrong[0])

    async def home(request: Request) -> Response:
        return refusal(request) or Response(text, media_type="text/html", headers=headers)

    async def events(request: Request) -> Response:
        return refusal(request) or StreamingResponse(
            _stream(feed, bell), media_type="text/event-stream", headers=headers
        )

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(_keep_looking(feed, bell))
        yield
        looking.cancel()

    return Starlette(routes=[Route("/", home), Route("/events", events)], lifespan=life)


async def _keep_looking(feed: Feed, bell: Broadcast) -> None:
    while True:
        before = (feed.version, feed.fault)
        await asyncio.to_thread(feed.look)
        looked = time.monotonic()
        more = True
        while more and time.monotonic() - looked < LOOK_EVERY:
            if (feed.version, feed.fault) != before:
                bell.ring()
            before = (feed.version, feed.fault)
            more = await asyncio.to_thread(feed.work)
        if (feed.version, feed.fault) != before:
            bell.ring()
        await asyncio.sleep(max(LOOK_EVERY - (time.monotonic() - looked), 0.0))


class Broadcast:
    """Wakes all waiting tasks, once per ring."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def ring(self) -> None:
        """Wake them."""
        self.event.set()
        self.event = asyncio.Event()


async def _stream(feed: Feed, bell: Broadcast) -> AsyncIterator[str]:
    """Everything at first, then what changes; a comment now and then keeps the connection open."""
    seen, fault = 0, None
    yield "retry: 1000\n\n"
    while True:
        event = bell.event
        parts, seen = feed.since(seen)
        if parts:
            yield "event: parts\ndata: {" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}\n\n"
        if feed.fault is not None and feed.fault != fault:
            yield f"event: fault\ndata: {json.dumps(feed.fault)}\n\n"
        fault = feed.fault
        try:
            await asyncio.wait_for(event.wait(), KEEP_ALIVE)
        except TimeoutError:
            yield ": still here\n\n"
