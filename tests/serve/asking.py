"""Requests to the server's application without a network, for tests."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from omdpd.serve.app import Application
from omdpd.serve.desk import Desk

HOST = "127.0.0.1:1"


class Asking:
    """An application with its loop; every request is one call."""

    def __init__(self, desks, token=None, rate=1e9):
        self.app = Application(desks, token, ["127.0.0.1"], rate)
        self.runner = asyncio.Runner()
        self.thread = ThreadPoolExecutor(1)  # a browser of another test has a loop in this one
        for desk in desks.values():
            desk.start(self.runner.get_loop())

    def wait(self, work):
        """What a coroutine answers."""
        return self.thread.submit(self.runner.run, work).result()

    def raw(self, method, path, body=b"", headers=(), query=b"", pieces=None):
        """Status, headers and the bytes of an answer."""
        sent, waiting = [], [body] if pieces is None else list(pieces)

        async def receive():
            if not waiting:
                await asyncio.Event().wait()
            piece = waiting.pop(0)
            more = bool(waiting) or pieces is not None
            return {"type": "http.request", "body": piece, "more_body": more}

        async def send(message):
            sent.append(message)

        given = {"host": HOST, "content-type": "application/json", **dict(headers)}
        scope = {
            "type": "http", "method": method, "path": path, "query_string": query, "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip
        self.wait(self.app(scope, receive, send))
        return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]

    def __call__(self, method, path, said=None, **headers):
        """Status and content."""
        body = b"" if said is None else json.dumps(said).encode()
        status, _, answer = self.raw(method, path, body, headers)
        return status, json.loads(answer) if answer else None

    def post(self, path, **said):
        return self("POST", path, said)

    def learnt(self, desk):
        """Wait until nothing is to be learnt from."""
        while desk.session.waiting:
            self.wait(asyncio.sleep(0.001))


@contextmanager
def asking(*sessions, token=None, rate=1e9, drop_after=1e9):
    """An application of sessions called one, two, ..., stopped at the end."""
    names = ("one", "two", "three")[: len(sessions)]
    desks = {name: Desk(name, session, drop_after) for name, session in zip(names, sessions, strict=True)}
    made = Asking(desks, token, rate)
    try:
        yield made
    finally:
        for desk in desks.values():
            desk.stop()
        made.thread.submit(made.runner.close).result()
        made.thread.shutdown()
