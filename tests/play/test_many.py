"""Episodes played together are the episodes that the learner's verbs play one by one, bit for bit."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from omdpd import CMDP
from omdpd.experiments.one_run import advance
from omdpd.experiments.registry import Registry
from omdpd.jit.decorators import COMPILED
from omdpd.learners import tables_or_graph
from omdpd.learners.protocol import restored, stored_classes
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.natures import NATURES
from omdpd.natures.fixed import Fixed
from omdpd.natures.pool import Pool, draw_pool
from omdpd.play import loop, many
from omdpd.play.loop import Progress, batches, play, start_of_run
from omdpd.play.scene import Scene
from omdpd.problem.cmdp import Round, Scenarios
from omdpd.storage.packing import pack, unpack
from omdpd.storage.run_folder import RunFolder
from omdpd.worlds import WORLDS, random_dirichlet
from tests.references.opened import opened

SEED = 5
TOGETHER = (
    "fixed", "noisy", "scaled", "pool", "adaptive", "anchored", "drifting", "independent", "natural", "hostile",
    "unrevealed", "parallel", "impossible", "turning",
)  # fmt: skip
BY_VERBS = ("switching_rewards", "drifting_rewards", "adaptive_rewards", "moving", "digits", "order", "beta")


def world(S: int = 4, A: int = 2, H: int = 3, n_constraints: int = 1, seed: int = 0) -> CMDP:
    rng = np.random.default_rng(seed)
    cost = rng.random((n_constraints, H, S, A))
    cmdp = CMDP.from_arrays(
        rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A)), cost, np.full(n_constraints, 0.6 * H)
    )
    return replace(cmdp, scenarios=Scenarios(("one", "two"), np.stack([cmdp.excess, 0.9 * cmdp.excess[::-1]])))


class Turning(Pool):
    """A pool that gives its rounds in another order every time it is asked, in one list."""

    told: list[Round]

    def draw(self, k: int, occupancy: Any) -> Round:
        return super().draw(k, occupancy)

    def ahead(self, k: int, n: int) -> Any:
        rounds, choices = super().ahead(k, n)
        turn = k % len(rounds)
        self.__dict__.setdefault("told", [])[:] = rounds[turn:] + rounds[:turn]
        return self.told, (choices - turn) % len(rounds)


def nature_of(name: str, cmdp: CMDP) -> Any:
    """One of the library's natures, or a nature with something odd about it."""
    if name in NATURES:
        return NATURES[name](cmdp, 3)
    if name == "beta":
        return NATURES["noisy"](cmdp, 3, noise="beta")
    tables = draw_pool(cmdp, 0, 4)
    if name == "parallel":  # in all their entries, or in none
        tables[1], tables[2, 0], tables[3] = 0.5 * tables[0], 0.0, 0.0
    elif name == "impossible":  # nobody can meet them: margins fall below zero
        tables = 0.2 + 0.8 * np.random.default_rng(0).random(tables.shape)
    elif name == "digits":
        tables = tables.astype(np.float32)
    elif name == "order":
        tables = np.asfortranarray(tables)
    return (Turning if name == "turning" else Pool)(cmdp, 0, tables, "cyclic")


def scene_of(cmdp: CMDP, nature: str, episodes: int, known: bool = True, **dials: Any) -> Scene:
    learner = ProximalOMDPD.standard(**dials)
    return Scene(cmdp, nature_of(nature, cmdp), learner, episodes, {}, episodes_known=known)


def packed(now: Progress) -> tuple[Any, dict[str, bytes]]:
    """Everything of a progress but the clock, as bytes."""
    tree, arrays = pack((now.learner_state, now.totals, now.keys, now.ledger, now.weights))
    return tree, {name: array.tobytes() for name, array in arrays.items()}


def some(k: int) -> bool:
    return k % 3 != 1


@contextmanager
def a_machine(long: int = loop.MAX_BATCH) -> Iterator[list[int]]:
    """One on which so many episodes are played together, however slow it is; it notes those that the verbs play."""
    judged, by_verbs = loop.play_judged, []

    def noted(*given: Any) -> Any:
        by_verbs.append(1)
        return judged(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "BATCH_SECONDS", 1e9)
        patch.setattr(loop, "MAX_BATCH", long)
        patch.setattr(loop, "play_judged", noted)
        yield by_verbs


def stored_and_read(scene: Scene, now: Progress) -> Progress:
    kept = restored(scene.learner, unpack(*pack(now.learner_state), stored_classes(scene.learner)))
    return Progress(kept, now.totals, now.keys, now.seconds, weights=now.weights)


def same(scene: Scene, stops: tuple[int, ...] = (), long: int = loop.MAX_BATCH) -> int:
    """Hold a scene played together, and stored at every stop, to what the verbs make of it; how many they had to play.

    Those are one for every time that a memory grows, and all of them where rounds are not known ahead.
    """
    rng, values, rows = np.random.default_rng(SEED), [], []
    for value, row, whole in play(scene, start_of_run(scene), rng, some):  # noqa: B007
        values.append(value)
        rows += [] if row is None else [row]
    other, told, more, kept, now = np.random.default_rng(SEED), [], [], [], start_of_run(scene)
    with a_machine(long) as by_verbs:
        for stop in sorted({*stops, scene.episodes}):
            for played in batches(scene, now, other, some, (stop,)):
                told += played.values
                more += played.rows
                now = played.now
                kept.append((now, packed(now)))
                if now.k == stop:
                    break
            assert now.k == stop, "a stretch ends at every stop"
            now = stored_and_read(scene, now)
    assert told == values
    assert more == rows
    assert other.bit_generator.state == rng.bit_generator.state
    assert packed(now) == packed(whole)
    assert all(packed(earlier) == then for earlier, then in kept), "a state stays what it was when it was given"
    return len(by_verbs)


def times_grown(scene: Scene) -> int:
    *_, (_, _, end) = play(scene, start_of_run(scene), np.random.default_rng(SEED), bool)
    return round(math.log2(end.learner_state.room / start_of_run(scene).learner_state.room))


@settings(max_examples=60 if COMPILED else 2)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 2, 4]), st.integers(0, 99)),
    st.sampled_from(TOGETHER), st.sets(st.integers(1, 39)), st.integers(1, 40), st.booleans(),
    st.fixed_dictionaries(
        {"memory": st.sampled_from([0, 2, 8, 20]), "lagged": st.booleans()},
        optional={
            "z": st.sampled_from([0.0, 4.0]), "exploration": st.just(0.0), "w0": st.sampled_from([0.01, 1e5]),
            "stationary": st.just(True), "patient": st.just(False), "gamma_scale": st.just(300.0),
            "w_max": st.just(12.0), "eta": st.just(50.0), "eta_bandit": st.just(50.0),
        },
    ),
)  # fmt: skip
@example((4, 2, 3, 1, 0), "independent", {17}, 5, False, {"memory": 20})
@example((4, 2, 3, 2, 0), "anchored", set(), 40, True, {"memory": 2, "patient": False})
@example((3, 2, 2, 1, 0), "impossible", {1, 2, 3}, 40, True, {})
@example((3, 1, 2, 2, 0), "pool", {5}, 40, True, {})
@example((1, 1, 3, 1, 0), "noisy", set(), 40, True, {})
@example((4, 2, 3, 4, 0), "turning", set(), 3, True, {"lagged": False})
def test_verbs_and_loop_play_the_same_run(
    sizes: tuple[int, int, int, int, int], nature: str, stops: set[int], long: int, known: bool, dials: dict[str, Any]
) -> None:
    if sizes[:2] == (1, 1) and nature not in {"fixed", "noisy", "scaled"}:
        nature = "noisy"  # a single row leaves a pool nothing to differ in
    scene = scene_of(world(*sizes), nature, 40, known, **dials)
    assert same(scene, tuple(stops), long) == times_grown(scene)


def test_those_runs_have_margins_below_zero_and_memories_that_grow_and_overflow() -> None:
    scene = scene_of(world(3, 2, 2), "impossible", 150)
    assert same(scene) == 0
    *_, (_, _, end) = play(scene, start_of_run(scene), np.random.default_rng(SEED), bool)
    assert opened(end.learner_state).share < 0.0
    assert times_grown(scene_of(world(), "independent", 40, memory=20)) == 2
    assert times_grown(scene_of(world(), "independent", 40, memory=8)) == 0


@pytest.mark.parametrize("nature", BY_VERBS)
def test_what_cannot_be_known_ahead_or_is_not_the_usual_form_is_played_by_the_verbs(nature: str) -> None:
    assert same(scene_of(world(), nature, 12)) == 12


@pytest.mark.parametrize("nature", ["noisy", "pool", "independent", "adaptive"])
def test_two_thousand_episodes_together_are_those_one_by_one(nature: str) -> None:
    cmdp = random_dirichlet.make(np.random.default_rng(7), 5, 3, 5)
    assert same(scene_of(cmdp, nature, 2000 if COMPILED else 20)) == 0


@pytest.mark.parametrize("name", ["cyclic", "correlated", "inventory", "queue", "streaming", "garnet"])
def test_worlds_of_the_library(name: str) -> None:
    cmdp = WORLDS[name](np.random.default_rng(1)) if name in {"correlated", "garnet"} else WORLDS[name]()
    own = ("natural", "hostile") if cmdp.scenarios is not None else ()
    assert [same(scene_of(cmdp, nature, 40)) for nature in ("noisy", "pool", "adaptive", *own)] == [0] * (3 + len(own))


def test_rounds_that_do_not_fit_into_memory_at_once_are_drawn_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cmdp = world()
    monkeypatch.setattr(many, "MAX_ENTRIES", 5 * cmdp.excess.size)
    assert same(scene_of(cmdp, "independent", 23)) == 0
    monkeypatch.setattr(many, "MAX_ENTRIES", 1)
    assert same(scene_of(cmdp, "independent", 5)) == 0


def test_a_nature_without_names_for_its_tables_collects_none() -> None:
    cmdp = world()
    assert same(replace(scene_of(cmdp, "fixed", 30), nature=Fixed(cmdp, repeats=False))) == 0


def test_a_run_that_is_stopped_again_and_again_is_the_run_that_was_not(tmp_path: Path) -> None:
    spec = Registry.installed().run("random_dirichlet", "pool", "ProximalOMDPD.standard", 100, 0)
    whole, parts = RunFolder(tmp_path / "whole", spec.id), RunFolder(tmp_path / "parts", spec.id)
    summary = advance(spec, whole, None, 100.0)
    calls, done = 0, None
    while done is None:
        done, calls = advance(spec, parts, None, 0.0, seconds=0.0), calls + 1
    assert calls > 3
    np.testing.assert_equal(parts.rows(), whole.rows())
    assert {**done, "seconds": 0.0} == {**summary, "seconds": 0.0}


UNSOLVED = """
from tests.play import test_many
from omdpd.learners.standard import on_tables
from omdpd.learners.standard.steps import FAILED

solve, failed = on_tables.solve_step, []

def now_and_then(reference, loss, eta, *rest):
    gap, scale, steps, status, residual = solve(reference, loss, eta, *rest)
    if int(abs(float(loss.sum())) * 1e7 + eta * 1e5) % 3 < 2:
        failed.append(eta)
        status = FAILED
    return gap, scale, steps, status, residual

on_tables.solve_step = now_and_then
for nature in ("noisy", "pool"):
    assert test_many.same(test_many.scene_of(test_many.world(2, 2, 2), nature, 12)) == 0
print(len(set(failed)))
"""


def test_a_step_that_cannot_be_solved_is_shortened_in_the_same_way() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", UNSOLVED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2, "steps of several lengths failed"


@njit
def moody(dials, at, vector, states, actions, rewards, costs, tables):  # type: ignore[no-untyped-def]
    """A compiled step that leaves five episodes to the verbs, and then breaks down."""
    if vector[0] > 4:
        vector[:] = 0.0
        raise ValueError("enough of this")
    return 2


@dataclass(frozen=True)
class Moody(ProximalOMDPD):
    """A learner with that step."""

    def update(self, state: Any, feedback: Any) -> Any:
        return super().update(state, feedback)

    def compiled(self, state: Any) -> Any:
        return super().compiled(state)._replace(step=moody)


def test_a_step_that_cannot_learn_leaves_its_episodes_to_the_verbs_and_its_exceptions_pass() -> None:
    scene = scene_of(world(), "noisy", 40)
    scene = replace(scene, learner=Moody(**vars(scene.learner)))
    with a_machine() as by_verbs:
        episodes = batches(scene, start_of_run(scene), np.random.default_rng(SEED), some)
        kept = [(now, packed(now)) for now in (next(episodes).now for _ in range(5))]
        with pytest.raises(ValueError, match="enough of this"):
            kept += [(played.now, packed(played.now)) for played in episodes]
    assert len(by_verbs) > 4
    assert all(packed(now) == then for now, then in kept)


@dataclass(frozen=True)
class Stubborn(ProximalOMDPD):
    """A learner of the user's that never learns: the compiled step that it inherits is not its own."""

    def update(self, state: Any, feedback: Any) -> Any:
        return state


def test_a_subclass_with_a_verb_of_its_own_is_played_by_its_verbs() -> None:
    scene = scene_of(world(), "noisy", 20)
    assert same(replace(scene, learner=Stubborn(**vars(scene.learner)))) == 20


def test_episodes_are_played_together_once_beliefs_have_gone_over_to_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_or_graph, "SMALL", 0)
    monkeypatch.setattr(tables_or_graph, "DENSE", 0.1)
    assert 1 < same(scene_of(world(), "noisy", 60)) < 60


def test_metrics_of_the_user_s_and_graphs_are_left_to_the_verbs() -> None:
    scene = scene_of(world(), "noisy", 12)
    assert same(replace(scene, metrics={"mine": lambda *_: 1.0})) == 12
    assert same(scene_of(world(), "noisy", 12, layout="graph")) == 12
    assert same(replace(scene, learner=ProximalOMDPD.cautious())) == 12
