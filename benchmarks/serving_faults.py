"""What a server must outlive: kills under load, and clients that delay, repeat and confuse what they say.

python -m benchmarks.serving kills --times 100                    # kill -9 under load: is anything told lost?
python -m benchmarks.serving order --clients 64 --episodes 10000  # delays, duplicates, disorder: the same bits?
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.http_clients import A, H, S, Server, asked, drive, episodes, made, request
from omdpd import ProximalOMDPD, Session, Setting
from omdpd.play.books import Books
from omdpd.storage.journal import Journal


def kills(times, clients=8, seed=0):
    """Kill a server under load again and again; every acknowledged tell and end must be in the journal."""
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
    books = Books()
    for entry in journal.past():
        if (over := books.apply(entry, setting)) is not None:
            plain.take_over(over)
    journal.close()
    same = bool(np.array_equal(policy, plain.policy()))
    print(f"{clients} clients, {ended} episodes in {wall:.0f} s, exit code {code}: the same bits: {same}")
    shutil.rmtree(root)
    return ended, same
