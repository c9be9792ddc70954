"""From a folder to a server that runs until it is told to stop."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import socket as Socket

from omdpd.experiments.registry import Registry
from omdpd.report.connections import admitted, listening, run_bounded, url_of
from omdpd.serve.app import Application
from omdpd.serve.described import described, folders_of, open_described, open_shadow, served
from omdpd.serve.desk import Desk, Look
from omdpd.serve.status import belief_lines

# Seconds after which a thread that works gives way to one that waits: an update must not make an action late.
SWITCH_SECONDS = 0.0005
# Seconds that open requests have when the server is told to stop.
PATIENCE = 10


@dataclass(frozen=True)
class ServerAddress:
    """Where a server listens, whether other machines may ask, its further names, its token, and requests a second."""

    address: str
    port: int
    public: bool = False
    names: tuple[str, ...] = ()
    token: str | None = None
    rate: float = 10_000.0


def showing(folder: Path, registry: Registry, place: ServerAddress) -> None:
    """Show the sessions of a folder that another process has open."""
    looks = {name: Look(name, path, registry) for name, path in folders_of(folder).items()}
    for each in looks.values():
        each.status()
    with listening(place.address, place.port) as socket:
        _run(looks, place, socket, "showing")


def serving(folder: Path, registry: Registry, place: ServerAddress) -> None:
    """Serve the sessions of a folder."""
    admitted(place.address, place.port, place.public, place.names)
    desks: dict[str, Desk] = {}
    try:
        with listening(place.address, place.port) as socket:
            for name, path in served(folder).items():
                session = open_described(path, registry)
                session.warm_up()
                desks[name] = Desk(name, session, described(path).drop_after)
                if (shadow := open_shadow(path, registry, session)) is not None:
                    desks[name].shadow = shadow
                    shadow.lag()
                    session.follow(shadow)
            sys.setswitchinterval(SWITCH_SECONDS)
            _run(desks, place, socket, "serving")
    finally:
        for desk in desks.values():
            desk.session.close()
            if desk.shadow is not None:
                desk.shadow.close()


def _run(desks: Mapping[str, Desk], place: ServerAddress, socket: Socket, word: str) -> None:
    made, hosts = admitted(place.address, place.port, place.public, place.names)
    token = None if made is None else place.token or made
    application = Application(desks, token, hosts, place.rate)
    print(f"{word} {', '.join(desks)} at {url_of(socket, hosts, token)}")
    print(*(f"{name}: {line}" for name, desk in desks.items() for line in belief_lines(desk.status().belief)), sep="\n")
    sys.stdout.flush()
    gc.collect()
    gc.freeze()  # what is there now stays: to look through it for garbage, again and again, holds up whoever asks
    run_bounded(application, socket, PATIENCE)
