"""A server under load: acts a second, durable tells a second, and how late acts are while updates run.

    python -m benchmarks.serving most --seconds 10                  # clients that never rest: how much it can do
    python -m benchmarks.serving late --rates 500 1000 2000         # acts that come at a rate: how late answers are
    python -m benchmarks.serving kills --times 100                  # kill -9 under load: is anything told lost?
    python -m benchmarks.serving order --clients 64 --episodes 10000  # delays, duplicates, disorder: the same bits?

The server is a process of its own, on this machine; so are the clients, one process that keeps a connection each.
Numbers depend on what else the machine does: its load is printed with them, what the server itself used, and for which
share of the time it could have answered and had to wait for a core.  Where that is not nearly zero, times are those of
the machine and not of the server.

With `most` a client asks again as soon as it is answered, so the server is full and answers wait in line: this measures
acts a second, and not how late one is.  With `late` episodes begin at random times at a rate that is told, and their
requests have times of their own.  An answer is late from that time on, whatever held the request up: a server that
falls behind, a connection that is not free, or the clients themselves.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
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
        for key, _ in chosen.select(1.0):
            line = key.data
            answer = line.receive()
            if answer is None:
                continue
            if late is not None:
                late.setdefault(line.kind, []).append(time.perf_counter() - line.asked)
            if not line.send(answer):
                chosen.unregister(key.fileobj)
                line.socket.close()
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
        for key, _ in chosen.select(0.0 if wait < 0.002 else wait - 0.001):
            line = key.data
            if (answer := line.receive()) is None:
                continue
            late.setdefault(line.kind, []).append(time.perf_counter() - line.asked)
            free.append(line)
            with suppress(StopIteration):
                wanted = line.script.send(answer)
                heapq.heappush(due, (line.asked + rng.expovariate(1.0 / PAUSE), line.number, line.script, wanted))
    for line in lines:
        line.socket.close()
    chosen.close()


def row(name, late, wall, used, waited):
    """One line of a table: acts and tells a second, and how late acts are."""
    ranked = sorted(late.get("act") or late["tell"])
    at = [1e3 * ranked[min(int(q * len(ranked)), len(ranked) - 1)] for q in (0.5, 0.99, 0.999)]
    rates = " | ".join(f"{len(late.get(kind, ())) / wall:.0f}" for kind in ("act", "tell"))
    times = " | ".join(f"{each:.2f}" for each in at)
    print(
        f"| {name} | {rates} | {times} | {1e6 * used / sum(map(len, late.values())):.0f} | {used / wall:.2f} | "
        f"{waited / wall:.2f} |"
    )


def loaded(names, run, learner):
    """A table with a new server for every row; `run` gives it its load."""
    root = Path(tempfile.mkdtemp(prefix="serving-"))
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.2f}\n")
    print(
        "| load | acts/s | tells/s | ms, half of the acts | 99 % | 99.9 % | CPU us a request | cores | waited for one |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for k, name in enumerate(names):
        server, late = Server(made(root / f"load-{k}", learner)), {}
        try:
            drive(server.place, [episodes(99, random.Random(99), n=20)])
            used, waited, began = server.cpu(), server.waited(), time.perf_counter()
            run(name, server.place, late)
            row(name, late, time.perf_counter() - began, server.cpu() - used, server.waited() - waited)
        finally:
            server.kill()
    print(f"\nload of the machine after: {os.getloadavg()[0]:.2f}")
    shutil.rmtree(root)


def most(clients, seconds, learner):
    """Clients that never rest: acts alone, whole episodes told, and both as clients play them."""
    scripts = {"acts alone": acts, "whole episodes told": tells, "both": lambda c: episodes(c, random.Random(c))}
    names = {f"{what}, {n} clients": (script, n) for what, script in scripts.items() for n in clients}

    def run(name, place, late):
        script, n = names[name]
        drive(place, [script(c) for c in range(n)], seconds, late)

    loaded(names, run, learner)


def late(rates, seconds, learner):
    """Acts that come at a rate, in episodes that are told, end and are learnt from."""
    names = {f"{rate:g} acts/s asked": rate for rate in rates}
    loaded(names, lambda name, place, found: flow(place, names[name], seconds, found), learner)


def kills(times, clients=8, seed=0):
    """Kill a server under load again and again; every acknowledged tell and end must be in the journal."""
    from omdpd.storage.journal import Journal

    root, rng, told = Path(tempfile.mkdtemp(prefix="kills-")), random.Random(seed), []
    folder = made(root / "killed")
    for k in range(times):
        server = Server(folder)
        try:
            wanted = [episodes(f"{k}.{c}", random.Random(rng.getrandbits(64)), told=told) for c in range(clients)]
            drive(server.place, wanted, rng.uniform(0.05, 0.6))
        finally:
            server.kill()
    journal = Journal(folder)
    journal.identify()
    kept = {(entry["do"], entry["id"]) for entry in journal.past() if entry["do"] in ("tell", "end")}
    journal.close()
    lost = set(told) - kept
    print(f"{times} kills, {len(told)} acknowledged tells and ends, {len(kept)} in the journal, {len(lost)} lost")
    shutil.rmtree(root)
    return len(told), lost


def asked(place, path):
    """What the server answers to a question."""
    found = []

    def script():
        found.append((yield "get", request("GET", path))[1])

    drive(place, [script()])
    return found[0]


def disorderly(client, rng, n):
    """Several episodes at once, told late, out of order and twice."""
    known = {}
    while n > 0 or known:
        if n > 0 and (len(known) < 4 or rng.random() < 0.3):
            id, n = f"d{client}-{n}", n - 1
            known[id] = []
            yield "begin", request("POST", "/episodes", {"id": id})
            continue
        id = rng.choice(list(known))
        walk = known[id]
        if len(walk) < H:
            said = {"state": rng.randrange(S), "step": len(walk)}
            _, answer = yield "act", request("POST", f"/episodes/{id}/act", said)
            walk.append(answer["action"])
            continue
        order = rng.sample(range(H), H)
        for h in order + rng.sample(order, 2):
            said = {"steps": [{"step": h, "reward": walk[h] / 3, "cost": 0.3 * walk[h]}]}
            status, _ = yield "tell", request("POST", f"/episodes/{id}/tell", said)
            assert status == 200
        for _ in range(rng.choice((1, 1, 2))):
            status, _ = yield "end", request("POST", f"/episodes/{id}/end", {})
            assert status == 200
        del known[id]


def order(clients, n_episodes, seed=0):
    """Delays, duplicates and disorder from many clients: the state must be that of the journal's order, bit by bit."""
    import numpy as np

    from omdpd import ProximalOMDPD, Session, Setting
    from omdpd.storage.journal import Journal

    root, rng = Path(tempfile.mkdtemp(prefix="order-")), random.Random(seed)
    folder = made(root / "many")
    server = Server(folder)
    each = n_episodes // clients
    began = time.perf_counter()
    try:
        drive(server.place, [disorderly(c, random.Random(rng.getrandbits(64)), each) for c in range(clients)])
        wall = time.perf_counter() - began
        while asked(server.place, "/status")["waiting"]:
            time.sleep(0.05)
    finally:
        code = server.stop()
    setting, learner = Setting(H, S, A, budget=2.0, cost_scale=1.0, seed=1), ProximalOMDPD.standard()
    with Session.open(folder, learner, setting) as served:
        policy, ended = np.asarray(served.policy()), served.episodes
    plain = Session(learner, setting)
    journal = Journal(folder)
    journal.identify()
    from omdpd.play.books import Books

    books = Books()
    for entry in journal.past():
        if (over := books.apply(entry, setting)) is not None:
            plain.take_over(over)
    journal.close()
    same = bool(np.array_equal(policy, plain.policy()))
    print(f"{clients} clients, {ended} episodes in {wall:.0f} s, exit code {code}: the same bits: {same}")
    shutil.rmtree(root)
    return ended, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["most", "late", "kills", "order"])
    parser.add_argument("--clients", type=int, nargs="+", default=None)
    parser.add_argument("--rates", type=float, nargs="+", default=[500.0, 1000.0, 2000.0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--learner", default="ProximalOMDPD.standard")
    given = parser.parse_args()
    if given.what == "most":
        most(given.clients or [4, 16, 64], given.seconds, given.learner)
        return 0
    if given.what == "late":
        late(given.rates, given.seconds, given.learner)
        return 0
    if given.what == "kills":
        return int(bool(kills(given.times)[1]))
    return int(not order((given.clients or [64])[0], given.episodes)[1])


if __name__ == "__main__":
    sys.exit(main())
