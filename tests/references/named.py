"""Specs by name: ``LEARNERS["SOPS"](safe_policy="uniform")``, the same for WORLDS and NATURES."""

from functools import partial

from omdpd.experiments.registry import Registry


def _made(kind, name, **settings):
    return Registry.installed().spec(kind, name, settings)


def _table(kind):
    return {name: partial(_made, kind, name) for name in Registry.installed().complete(kind)}


LEARNERS, WORLDS, NATURES = (_table(kind) for kind in ("learners", "worlds", "natures"))
