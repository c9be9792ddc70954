"""Learners side by side: the runs of a comparison and of a suite, and those of `omdpd.compare`, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
import numpy as np

from omdpd.experiments.executors import executor
from omdpd.experiments.experiment import GridNames, named_experiment
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment, RunSpec
from omdpd.learners.protocol import Learner
from omdpd.natures import NATURES
from omdpd.play.history import Watched, play_history
from omdpd.play.loop import seed_of
from omdpd.play.start import Before, Start, logged_by_a_safe_policy
from omdpd.problem.arrays import InvalidInputError, named, positive_integer, whole_number
from omdpd.problem.cmdp import CMDP
from omdpd.worlds.facts import LARGE

# The learner that paired differences are taken to unless another one is named.
YARDSTICK = "ProximalOMDPD.standard"


class ComparedWorld(NamedTuple):
    """A world of the default comparison with its natures, and its learners where not all play."""

    world: str
    natures: tuple[str, ...]
    learners: tuple[str, ...] = ()


# Made for a world that moves: where nothing does they could only lose.
RESTARTED = ("OPDOP.restarted", "TripleQ.restarted")
# Steps over all tables, or over a box of kernels, take ten milliseconds and more on the largest worlds; not these.
FAST = (
    YARDSTICK, "ProximalOMDPD.settling", "PlanLP", "GreedyLP", "OptCMDP", "OptDual", "OptPrimalDual", "OptPessLP",
    "OPDOP", "TripleQ", "UOptRPGPD", "Informed", "Oracle", "Uniform",
)  # fmt: skip
# What is compared where nothing else is asked for: families of random worlds with the natures that suit everybody or
# the revealed costs, a world that moves for those made for it, and then worlds that are not random.
RANDOM_PLACES = (
    ComparedWorld("random_dirichlet", ("noisy", "pool", "adaptive")),
    ComparedWorld("garnet", ("noisy", "pool")),
    ComparedWorld("correlated", ("noisy",)),
    ComparedWorld(
        "random_dirichlet",
        ("moving",),
        (*RESTARTED, "OPDOP", "TripleQ", "BVOPS", "WCOPS", "OptCMDP", YARDSTICK, "Uniform"),
    ),
)
NAMED_PLACES = (
    ComparedWorld("chain", ("noisy",), FAST),
    ComparedWorld("gathering", ("noisy",), FAST),
    ComparedWorld("streaming", ("noisy",)),
    ComparedWorld("inventory", ("noisy",)),
    ComparedWorld("job_queue", ("noisy",)),
)
PLACES = (*RANDOM_PLACES, *NAMED_PLACES)
QUICK_PLACES = (ComparedWorld("random_dirichlet", ("noisy", "pool")),)
# On worlds that are not drawn, half of the seeds are played.
FEWER = 2
# The leaders are played on so many seeds for these multiples of the episodes.
LONG_SEEDS, LONG = 3, (0.25, 4.0, 100.0 / 3.0)


class Defaults(NamedTuple):
    """What a suite plays where nothing else is asked for."""

    natures: tuple[str, ...]
    learners: tuple[str, ...]
    episodes: int


SUITE = Defaults(
    ("fixed", "noisy", "natural", "hostile", "pool", "adaptive"),
    (
        "ProximalOMDPD.standard",
        "ProximalOMDPD.cautious",
        "ProximalOMDPD.balanced",
        "ProximalOMDPD.optimistic",
        "Uniform",
    ),
    1000,
)
# On worlds of thousands of states: stochastic costs, the default learner, and as many episodes as take a few minutes.
LARGE_SUITE = Defaults(("fixed", "noisy"), ("ProximalOMDPD.standard", "Uniform"), 100)
# Over the confidence box of a large world a mirror step has hundreds of thousands of unknowns: not by default.
SLOW_LEARNER, MAX_STATES = "ProximalOMDPD.optimistic", 40


def comparison_grids(registry: Registry, names: GridNames, episodes: int, seeds: int, quick: bool) -> list[Experiment]:
    """A comparison of what was asked for, or of the default places.

    Unless they are named, learners made for a world that moves play no other.
    """
    everybody, grids = names.learners or registry.complete("learners"), []
    if names.worlds or names.natures:
        worlds, natures = names.worlds or [*dict.fromkeys(p.world for p in PLACES)], names.natures or PLACES[0].natures
        some = [each for each in everybody if names.learners or "moving" in natures or each not in RESTARTED]
        return [named_experiment(registry, GridNames(worlds, natures, some), episodes, seeds)]
    for place in QUICK_PLACES if quick else PLACES:
        some = [each for each in everybody if (each in place.learners if place.learners else each not in RESTARTED)]
        if some:
            n_seeds = seeds if place not in NAMED_PLACES else -(-seeds // FEWER)
            chosen = GridNames([place.world], place.natures, some)
            grids.append(named_experiment(registry, chosen, episodes, n_seeds))
    return grids


def yardstick(runs: Sequence[RunSpec], against: str | None) -> str:
    """The learner that differences are taken to: the one that is named, ours, or the first."""
    compared = list(dict.fromkeys(each.learner.name for each in runs))
    if against is None:
        return YARDSTICK if YARDSTICK in compared else compared[0]
    if against not in compared:
        raise InvalidInputError(f"--against is {against!r}, which is none of the learners that are compared")
    return against


def share_of(runs: Sequence[RunSpec], place: int, n_shards: int) -> list[RunSpec]:
    """Give the runs of one of `n_shards` shares of the learners; all runs of a learner are in one share."""
    if not 1 <= place <= n_shards:
        raise InvalidInputError(f"--shard is {place}/{n_shards}, but must be one of 1 to {n_shards}")
    names = list(dict.fromkeys(each.learner for each in runs))
    return [each for each in runs if names.index(each.learner) % n_shards == place - 1]


def names_to_show(registry: Registry, runs: Sequence[RunSpec], wanted: Sequence[str]) -> list[str]:
    """The learners that a figure names: those wanted, by name or class; else a plugin's; else none in particular."""
    compared = dict.fromkeys(each.learner.name for each in runs)
    for each in wanted:
        if each not in {name for full in compared for name in (full, full.partition(".")[0])}:
            raise InvalidInputError(f"--highlight names {each!r}, which is none of the learners that are compared")
    return list(wanted) or sorted({*compared} - {*Registry.installed().complete("learners")}, key=[*compared].index)


def longer_runs(runs: Sequence[RunSpec], leaders: Mapping[str, Sequence[str]]) -> list[RunSpec]:
    """Runs of the first world's leaders, which are named by nature, for other numbers of episodes."""
    world, seeds = runs[0].world, range(runs[0].seed, runs[0].seed + LONG_SEEDS)
    return [
        msgspec.structs.replace(each, episodes=max(round(times * each.episodes), 1))
        for nature, names in leaders.items()
        for each in runs
        if each.world == world and each.nature.label == nature and each.learner.label in names and each.seed in seeds
        for times in LONG
    ]


def suite_grid(registry: Registry, names: GridNames, episodes: int | None, seeds: int, large: bool) -> Experiment:
    """Our learners over all worlds, or over those that have a large size at that size, unless something is named."""
    usual = LARGE_SUITE if large else SUITE
    worlds = names.worlds or (tuple(LARGE) if large else ())
    specs = [registry.spec("worlds", name, dict(named(LARGE, name, "large world")[0])) for name in worlds if large]
    chosen = GridNames(worlds, names.natures or usual.natures, names.learners or usual.learners)
    grid = named_experiment(registry, chosen, episodes or usual.episodes, seeds)
    return msgspec.structs.replace(grid, worlds=tuple(specs)) if large else grid


def without_slow(runs: Sequence[RunSpec]) -> tuple[list[RunSpec], list[str]]:
    """The runs that a suite plays by default, and a sentence for each world on which a learner is too slow for it."""
    tried = dict.fromkeys(each.world for each in runs if each.learner.name == SLOW_LEARNER)
    seeds = {each.world: each.seed for each in runs}
    slow = [world for world in tried if world.build(np.random.default_rng(seeds[world])).shape[1] > MAX_STATES]
    why = f"it takes most of a second per episode; --learners {SLOW_LEARNER} runs it"
    kept = [each for each in runs if each.learner.name != SLOW_LEARNER or each.world not in slow]
    return kept, [f"{SLOW_LEARNER} on {world.label}: {why}" for world in slow]


class _Asked(NamedTuple):
    """What every run of a comparison in memory has in common."""

    nature: str
    episodes: int
    logged: int
    start: Start


def play_in_memory(
    problems: Any, learners: Any, seeds: int, jobs: int, nature: str, episodes: int, logged: int, start: Start
) -> tuple[tuple[Mapping[str, Any], ...], tuple[str, ...]]:
    """The records of `omdpd.compare`, and a sentence for everything that does not fit together."""
    positive_integer("seeds", seeds)
    positive_integer("episodes", episodes)
    whole_number("logged", logged, 0)
    named(NATURES, nature, "nature")
    worlds, players = _labelled(problems, "problem"), _labelled(learners, "learner")
    for kind, given in (("worlds", worlds), ("learners", players)):
        for each in given.values():
            if isinstance(each, str):  # a typing error is no learner that does not fit
                Registry.installed().spec(kind, each)  # type: ignore[arg-type]
    tasks = [
        (label, problem, name, learner, seed, _Asked(nature, episodes, logged, start))
        for label, problem in worlds.items()
        for seed in range(seeds)
        for name, learner in players.items()
    ]
    with executor("local", min(jobs, len(tasks)) or 1) as workers:
        answers = [future.result() for future in [workers.submit(_play, *task) for task in tasks]]
    records = tuple(answer for answer in answers if isinstance(answer, dict))
    left_out = tuple(dict.fromkeys(answer for answer in answers if isinstance(answer, str)))
    if not records:
        raise InvalidInputError("no learner suits these problems: " + "; ".join(left_out))
    return records, left_out


def _labelled(given: Any, what: str) -> dict[str, Any]:
    """What was given by name; without names, the name of a world, a problem's own, or the class of a learner."""
    if isinstance(given, Mapping):
        found = dict(given)
    else:
        found = {}
        for each in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
            label = each if isinstance(each, str) else getattr(each, "name", None) or type(each).__name__
            found[label if label not in found else f"{label} {len(found)}"] = each
    if not found:
        raise InvalidInputError(f"a comparison needs at least one {what}")
    return found


def _play(
    label: str, problem: CMDP | str, name: str, learner: Learner[Any] | str, seed: int, asked: _Asked
) -> dict[str, Any] | str:
    """One run as a record, or the sentence that says why it cannot be played.

    The record is in the user's units; `seen` is what ranks are made of, in the learner's.
    """
    registry = Registry.installed()
    try:
        cmdp: CMDP = _drawn(registry, problem, seed) if isinstance(problem, str) else problem
        player = registry.spec("learners", learner).build() if isinstance(learner, str) else learner
        stream = np.random.SeedSequence(seed, spawn_key=(4,))
        nature, rng = NATURES[asked.nature](cmdp, seed_of(stream)), np.random.default_rng(stream)
        before = Before(logged_by_a_safe_policy(cmdp, nature, asked.logged, rng), asked.start)
        history = play_history(cmdp, player, asked.nature, asked.episodes, seed, name, Watched(), before)
    except InvalidInputError as error:
        return f"left out: {name} on {label}, {asked.nature}: {error}"
    parts = {"world": label, "nature": asked.nature, "learner": name, "seed": seed, "episodes": asked.episodes}
    regret = history.scores.regret_positive
    seen = {
        "regret_positive": None if regret is None else regret / history.units.span,
        "violation": float(history.rows.column("violation_sum")[-1]),
    }
    return parts | asdict(history.scores) | {"seen": seen}


def _drawn(registry: Registry, world: str, seed: int) -> Any:
    """A world by its name, drawn from the seed's stream for worlds."""
    return registry.spec("worlds", world).build(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))))
