"""What the live certificate of the default costs: `python -m benchmarks.certificate [WORLD ...]`.

One episode is learnt again and again from the state after 1599 episodes, and from the same state with its number moved
by one: the first is followed by a look at what the policy in play can lose, the second is not.  Batches of both take
turns, and the medians of their processor time are shown, with what a look every sixteenth episode adds to an episode.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np

from benchmarks.standard import print_markdown
from omdpd import ProximalOMDPD
from omdpd.beliefs.rules import LOOKS, is_asked
from omdpd.experiments.registry import Registry
from omdpd.learners.standard.state import K
from omdpd.learners.standard.verbs import episode_of
from omdpd.play.loop import play, seed_of, start_of_run
from omdpd.play.scene import Scene
from omdpd.play.simulate import play_episode

PLAYED, BATCHES, EACH = 1599, 60, 40
WORLDS = ("random_dirichlet", "streaming", "inventory", "grid")


def microseconds(world: str, nature: str) -> tuple[float, float]:
    """Of an episode without a look, and with one."""
    spec = Registry.installed().run(world, nature, "Uniform", PLAYED + 2, 0)
    cmdp = spec.world.build(np.random.default_rng(spec.stream(0)))
    rng = np.random.default_rng(spec.stream(2))
    scene = Scene(cmdp, spec.nature.build(cmdp, seed_of(spec.stream(1))), ProximalOMDPD.standard(), PLAYED + 2, {})
    state = None
    for _, _, now in play(scene, start_of_run(scene), rng, lambda k: False):
        if now.k == PLAYED:
            state = now.learner_state
            break
    learner, feedback = scene.learner, scene.nature.feedback
    met = play_episode(cmdp, scene.nature.draw(PLAYED, None), learner.policy(state), feedback, rng)
    episode, plain = episode_of(state.setting, met), state.copy()
    plain.parts.account[K] += 1.0
    assert is_asked(PLAYED + 1.0)
    assert not is_asked(PLAYED + 2.0)
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(BATCHES):
        for times, start in zip(taken, (plain, state), strict=True):
            step, dials, at, vector, *_ = learner.compiled(start)
            before = vector.copy()
            spent = 0.0
            for _ in range(EACH):
                vector[:] = before
                began = process_time()
                step(dials, at, vector, *episode)
                spent += process_time() - began
            times.append(1e6 * spent / EACH)
    return float(np.median(taken[0])), float(np.median(taken[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    lines = [("world", "costs", "an episode without a look, µs", "a look, µs", "added to an episode")]
    for world in parser.parse_args().worlds:
        for nature in ("noisy", "pool"):
            without, with_it = microseconds(world, nature)
            look = with_it - without
            cells = (f"{without:.0f}", f"{look:.1f}", f"{look / LOOKS / without:.1%}")
            lines.append((f"`{world}`", f"`{nature}`", *cells))
    print_markdown(lines)


if __name__ == "__main__":
    main()
