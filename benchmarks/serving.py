"""A server under load: acts a second, durable tells a second, and how late acts are while updates run.

    python -m benchmarks.serving most --seconds 10                  # clients that never rest: how much it can do
    python -m benchmarks.serving late --rates 500 1000 2000         # acts that come at a rate: how late answers are
    python -m benchmarks.serving kills --times 100                  # kill -9 under load: is anything told lost?
    python -m benchmarks.serving order --clients 64 --episodes 10000  # delays, duplicates, disorder: the same bits?

The server is a process of its own, on this machine; so are the clients, one process that keeps a connection each.
Numbers depend on what else the machine does.  So its load is printed with them, what the server itself used, for which
share of the time it could have answered and had to wait for a core, and which share of all cores the host of a virtual
machine took away.  Where these two are not nearly zero, times are those of the machine and not of the server.

On a machine that does other things, `--first` lets the server and its clients run before all of them (as root, under
Linux).  `nice` may not do: Linux shares cores among login sessions first, and nice counts within one.  A row in which
the host took more than a thousandth is measured again, up to `--tries` times, and every try is printed.

With `most` a client asks again as soon as it is answered, so the server is full and answers wait in line: this measures
acts a second, and not how late one is.  With `late` episodes begin at random times at a rate that is told, and their
requests have times of their own.  An answer is late from that time on, whatever held the request up: a server that
falls behind, a connection that is not free, or the clients themselves.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.http_clients import Server, acts, drive, episodes, flow, made, tells
from benchmarks.serving_faults import kills, order

# The share of all cores that the host may take away in a row.
TAKEN = 0.001


def taken():
    """Seconds of all cores that the host of a virtual machine took away so far."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def row(name, late, wall, used, waited, away):
    """One line of a table: acts and tells a second, and how late acts are."""
    ranked = sorted(late.get("act") or late["tell"])
    at = [1e3 * ranked[min(int(q * len(ranked)), len(ranked) - 1)] for q in (0.5, 0.99, 0.999)]
    rates = " | ".join(f"{len(late.get(kind, ())) / wall:.0f}" for kind in ("act", "tell"))
    times = " | ".join(f"{each:.2f}" for each in at)
    print(
        f"| {name} | {rates} | {times} | {1e6 * used / sum(map(len, late.values())):.0f} | {used / wall:.2f} | "
        f"{waited / wall:.2f} | {away:.4f} |",
        flush=True,
    )


def measured(name, run, folder, learner):
    """A row of a new server, which `run` gives its load; the share of all cores that the host took away meanwhile."""
    server, late = Server(made(folder, learner)), {}
    try:
        drive(server.place, [episodes(99, random.Random(99), n=20)])
        used, waited, before, began = server.cpu(), server.waited(), taken(), time.perf_counter()
        run(name, server.place, late)
        wall = time.perf_counter() - began
        away = (taken() - before) / wall / os.cpu_count()
        row(name, late, wall, server.cpu() - used, server.waited() - waited, away)
    finally:
        server.kill()
    return away


def loaded(names, run, given):
    """A table with a new server for every row; `run` gives it its load."""
    if given.first:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    gc.disable()  # the clients' own pauses are not the server's
    root = Path(tempfile.mkdtemp(prefix="serving-"))
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.2f}\n")
    print("| load | acts/s | tells/s | ms, half of the acts | 99 % | 99.9 % | CPU us a request | cores ", end="")
    print("| waited for one | taken by the host |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        for _ in range(given.tries):
            if measured(name, run, Path(tempfile.mkdtemp(dir=root)), given.learner) <= TAKEN:
                break
    print(f"\nload of the machine after: {os.getloadavg()[0]:.2f}")
    shutil.rmtree(root)


def most(given):
    """Clients that never rest: acts alone, whole episodes told, and both as clients play them."""
    scripts = {"acts alone": acts, "whole episodes told": tells, "both": lambda c: episodes(c, random.Random(c))}
    names = {
        f"{what}, {n} clients": (script, n) for what, script in scripts.items() for n in given.clients or [4, 16, 64]
    }

    def run(name, place, late):
        script, n = names[name]
        drive(place, [script(c) for c in range(n)], given.seconds, late)

    loaded(names, run, given)


def late(given):
    """Acts that come at a rate, in episodes that are told, end and are learnt from."""
    names = {f"{rate:g} acts/s asked": rate for rate in given.rates}
    loaded(names, lambda name, place, found: flow(place, names[name], given.seconds, found), given)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["most", "late", "kills", "order"])
    parser.add_argument("--clients", type=int, nargs="+", default=None)
    parser.add_argument("--rates", type=float, nargs="+", default=[500.0, 1000.0, 2000.0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--learner", default="ProximalOMDPD.standard")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--tries", type=int, default=5)
    given = parser.parse_args()
    if given.what in ("most", "late"):
        {"most": most, "late": late}[given.what](given)
        return 0
    if given.what == "kills":
        return int(bool(kills(given.times)[1]))
    return int(not order((given.clients or [64])[0], given.episodes)[1])


if __name__ == "__main__":
    sys.exit(main())
