"""Clients of a server over HTTP: they ask one after the other, or at times that are told, and see how late answers are.

The server is a process of its own, on this machine; so are the clients, one process that keeps a connection each.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

H, S, A = 5, 5, 3
TEXT = f"""\
[setting]
horizon = {H}
n_states = {S}
n_actions = {A}
budget = 2.0
cost_scale = 1.0
seed = 1
[learner]
name = "{{learner}}"
"""
PATIENCE = 600.0
# Of `late`: connections that are kept, and the mean of seconds between the requests of an episode.
CONNECTIONS, PAUSE = 64, 0.02


def made(folder, learner="ProximalOMDPD.standard"):
    """The folder of a session of the paper's size."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "session.toml").write_text(TEXT.format(learner=learner))
    return folder


class Server:
    """`omdpd serve`, or another command that listens, as a process of its own."""

    def __init__(self, folder, command=("serve", "--rate", "1000000")):
        command = [sys.executable, "-m", "omdpd", command[0], str(folder), "--port", "0", *command[1:]]
        alone = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | alone)
        line = self.process.stdout.readline()
        found = re.search(r"at http://([\d.]+):(\d+)/", line)
        if found is None:
            raise RuntimeError(f"the server did not start: {line}")
        self.place = (found[1], int(found[2]))

    def cpu(self):
        """Seconds of CPU time that it used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waited(self):
        """Seconds that its first thread, which answers, waited for a core: others had them."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9

    def kill(self):
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self):
        """End it as an administrator does; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how):
        self.process.send_signal(how)
        with self.process.stdout:
            return self.process.wait(PATIENCE)


def request(method, path, said=None):
    """The bytes of a request."""
    body = b"" if said is None else json.dumps(said).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def response(data):
    """Status, content, and how many bytes they are; None while more is to come."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = data[:end].lower()
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    if len(data) < end + 4 + length:
        return None
    body = data[end + 4 : end + 4 + length]
    return int(data[9:12]), json.loads(body) if body else None, end + 4 + length


class Line:
    """A connection that is kept, one request at a time; a script says what is asked (a generator of requests)."""

    def __init__(self, place, script):
        self.socket = socket.create_connection(place, timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.script, self.data, self.asked = script, b"", 0.0
        self.kind = None

    def send(self, answer):
        """Go on with the script; whether there was more."""
        try:
            self.kind, wanted = self.script.send(answer)
        except StopIteration:
            return False
        self.asked = time.perf_counter()
        self.socket.sendall(wanted)
        return True

    def receive(self):
        """An answer, if it is whole."""
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError("the server closed the connection")
        self.data += piece
        found = response(self.data)
        if found is None:
            return None
        self.data = self.data[found[2] :]
        return found[:2]


def drive(place, scripts, seconds=PATIENCE, late=None):
    """Play scripts side by side until they end or the time is up; `late` has lists of seconds by kind."""
    lines, chosen = [Line(place, script) for script in scripts], selectors.DefaultSelector()
    for line in lines:
        if line.send(None):
            chosen.register(line.socket, selectors.EVENT_READ, line)
    until = time.perf_counter() + seconds
    while chosen.get_map() and time.perf_counter() < until:
        ready, now = chosen.select(1.0), time.perf_counter()  # all of these are there by now
        for key, _ in ready:
            line = key.data
            answer = line.receive()
            if answer is None:
                continue
            if late is not None:
                late.setdefault(line.kind, []).append(now - line.asked)
            if not line.send(answer):
                chosen.unregister(key.fileobj)
                line.socket.close()
    for line in lines:
        line.socket.close()
    chosen.close()


def asked(place, path):
    """What the server answers to a question."""
    found = []

    def script():
        found.append((yield "get", request("GET", path))[1])

    drive(place, [script()])
    return found[0]


def flow(place, rate, seconds, late, seed=0):
    """Episodes that begin at random, so many that `rate` requests to act come a second; how late answers are."""
    rng, chosen = random.Random(seed), selectors.DefaultSelector()
    free = deque(Line(place, None) for _ in range(CONNECTIONS))  # the one that rested longest is next: none is closed
    for line in free:
        chosen.register(line.socket, selectors.EVENT_READ, line)
    due, at, k, start = [], 0.0, 0, time.perf_counter() + 0.2
    while (at := at + rng.expovariate(rate / (H - 1))) < seconds:
        k += 1
        script = episodes(f"{seed}.{k}", random.Random(k), n=1)
        heapq.heappush(due, (start + at, k, script, next(script)))
    lines = list(free)
    while due or len(free) < len(lines):
        wait = due[0][0] - time.perf_counter() if due and free else 1.0
        if wait <= 0.0:
            line = free.popleft()
            line.asked, line.number, line.script, (line.kind, wanted) = heapq.heappop(due)
            line.socket.sendall(wanted)
        elif wait < 0.002:  # finer than the system waits
            time.sleep(min(wait, 0.0002))
        ready, now = chosen.select(0.0 if wait < 0.002 else wait - 0.001), time.perf_counter()
        for key, _ in ready:
            line = key.data
            if (answer := line.receive()) is None:
                continue
            late.setdefault(line.kind, []).append(now - line.asked)
            free.append(line)
            with suppress(StopIteration):
                wanted = line.script.send(answer)
                heapq.heappush(due, (line.asked + rng.expovariate(1.0 / PAUSE), line.number, line.script, wanted))
    for line in lines:
        line.socket.close()
    chosen.close()


def episodes(client, rng, n=10**9, told=None):
    """A client's script: episodes one after the other, each told in one request after its last act."""
    for k in range(n):
        id = f"c{client}-{k}-{rng.getrandbits(32):08x}"
        _, begun = yield "begin", request("POST", "/episodes", {"id": id, "state": rng.randrange(S)})
        actions = [begun["action"]]
        for h in range(1, H):
            said = {"state": rng.randrange(S), "step": h}
            _, answer = yield "act", request("POST", f"/episodes/{id}/act", said)
            actions.append(answer["action"])
        steps = [{"step": h, "reward": a / 3, "cost": 0.3 * a} for h, a in enumerate(actions)]
        for verb, said in (("tell", {"steps": steps}), ("end", {})):
            status, _ = yield verb, request("POST", f"/episodes/{id}/{verb}", said)
            if told is not None and status == 200:
                told.append((verb, id))


def acts(client):
    """A client that does nothing but act, in episodes that are dropped."""
    k, rng = 0, random.Random(client)
    while True:
        k += 1
        id = f"a{client}-{k}"
        yield "begin", request("POST", "/episodes", {"id": id, "state": rng.randrange(S)})
        for h in range(1, H):
            yield "act", request("POST", f"/episodes/{id}/act", {"state": rng.randrange(S), "step": h})
        yield "drop", request("DELETE", f"/episodes/{id}")


def tells(client):
    """A client that does nothing but tell whole episodes."""
    k, rng = 0, random.Random(client)
    while True:
        k += 1
        said = {
            "states": [rng.randrange(S) for _ in range(H)], "actions": [rng.randrange(A) for _ in range(H)],
            "rewards": [0.5] * H, "costs": [0.3] * H,
        }  # fmt: skip
        yield "tell", request("POST", f"/episodes/t{client}-{k}/tell", said)
