"""From a folder to a server that runs until it is told to stop."""

from __future__ import annotations

import sys
from pathlib import Path

from omdpd.experiments.registry import Registry
from omdpd.report.connections import admitted, listening, run_bounded
from omdpd.serve.app import Application
from omdpd.serve.described import described, folders_of, open_described
from omdpd.serve.desk import Desk

# Seconds after which a thread that works gives way to one that waits: an update must not make an action late.
SWITCH_SECONDS = 0.0005
# Seconds that open requests have when the server is told to stop.
PATIENCE = 10


def serving(
    folder: Path, registry: Registry, place: tuple[str, int, bool, list[str]], token: str | None, rate: float
) -> None:
    """Serve the sessions of a folder; `place` is an address, a port, whether others may ask, and further names."""
    address, port, _, _ = place
    made, hosts = admitted(*place)
    token = None if made is None else token or made
    desks: dict[str, Desk] = {}
    try:
        with listening(address, port) as socket:
            for name, path in folders_of(folder).items():
                session = open_described(path, registry)
                session.warm_up()
                desks[name] = Desk(name, session, described(path).drop_after)
            sys.setswitchinterval(SWITCH_SECONDS)
            where = f"http://{hosts[0]}:{socket.getsockname()[1]}/{'' if token is None else f'?token={token}'}"
            print(f"serving {', '.join(desks)} at {where}", flush=True)
            run_bounded(Application(desks, token, hosts, rate), socket, PATIENCE)
    finally:
        for desk in desks.values():
            desk.session.close()
