"""A safe start in the truth: the first plan, its forecast, and a hundred weeks after it.

    python -m benchmarks.first_weeks OUT.jsonl --worlds inventory,queue --draws 6 --first 9000 --logs 60 --weeks 100

One line per draw: values of the weeks as shares of the optimum, how far the worst budget is exceeded, whether forecasts
of the first week hold the truth, and seconds of the processor.  `--table` reads such a file and prints what it says.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from omdpd import CMDP, Policy, SafePolicy, SafeStart, Session
from omdpd.play.scene import logging_policy
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import Round
from omdpd.worlds import WORLDS

NAMED = ("inventory", "streaming", "queue", "job_queue", "intrusion")


def long_queue(n_states: int = 300, budget: tuple[float, float] = (300.0, 60.0)) -> CMDP:
    """A queue of 42 steps a week with budgets of money and complaints: jobs are admitted, half of them, or none."""
    chances, jobs, shares, served = (0.1, 0.2, 0.3, 0.25, 0.15), (0, 4, 8, 14, 22), (1.0, 0.5, 0.0), 8

    def admitted(action: int) -> list[int]:
        return [int(shares[action] * n) for n in jobs]

    def law(s: int, a: int) -> list[tuple[float, int]]:
        left = max(s - served, 0)
        return [(p, min(left + n, n_states - 1)) for p, n in zip(chances, admitted(a), strict=True)]

    def reward(s: int, a: int) -> float:
        return 15.0 * sum(p * n for p, n in zip(chances, admitted(a), strict=True)) - 0.05 * s

    def cost(s: int, a: int) -> tuple[float, float]:
        refused = sum(p * (n - m) for p, n, m in zip(chances, jobs, admitted(a), strict=True))
        return 0.8 * max(s - 50, 0), 0.3 * refused + 0.01 * s

    start = np.zeros(n_states)
    start[20:60] = 1.0 / 40.0
    low = min(reward(n_states - 1, a) for a in range(3))
    return CMDP.from_functions((42, n_states, 3), law, reward, cost, budget, start, reward_range=(low, reward(0, 0)))


def world(name: str, seed: int) -> CMDP:
    """A world by its name; garnets are drawn with the seed."""
    if name == "garnet":
        return WORLDS["garnet"](np.random.default_rng(seed), n_states=60, n_actions=3, horizon=12, branching=4)
    if name.startswith("long_queue"):
        return long_queue(int(name[10:] or 300))
    return WORLDS[name]()


def same_at_every_step(cmdp: CMDP) -> bool:
    """Whether the steps can be pooled."""
    tables = np.concatenate([cmdp.reward[None], cmdp.excess])
    return cmdp.stationary and float(np.ptp(tables, axis=1).max()) == 0.0


def draw(name: str, seed: int, n_logs: int, n_weeks: int, settings: dict[str, float], start: str = "logs") -> dict:
    """One draw: logs, a session from them, and its weeks."""
    cmdp, rng = world(name, seed), np.random.default_rng([seed, n_logs])
    noise = "beta" if name == "garnet" else "exact"
    round_ = Round(cmdp.reward, cmdp.excess, 0, noise, noise)
    logger, best = logging_policy(cmdp), cmdp.solve()
    units = np.maximum(np.abs(cmdp.budget * cmdp.cost_scale), 1e-9)
    logs = [play_episode(cmdp, round_, logger, "bandit", rng) for _ in range(n_logs)]
    before = time.process_time()
    base = Policy(logger).evaluate(cmdp)
    safe = SafePolicy(logger, (base.costs - base.budget) / cmdp.cost_scale, scaled=True) if start == "policy" else None
    session = Session(
        SafeStart(safe, stationary=same_at_every_step(cmdp), **settings),
        cmdp.setting(None, "bandit"),
        logged=logs if start == "logs" else (),
    )
    first = time.process_time() - before
    values, over, slowest, covered, plans = [], [], 0.0, [], []
    for _ in range(n_weeks):
        policy = session.policy()
        true = policy.evaluate(cmdp)
        values.append(true.value / best.value)
        over.append(float((true.excess / units).max()))
        told = session._state.forecast
        if told is not None:
            plans.append(bool(told.certified))
            sums = session.forecast()
            low, high = cmdp.reward_range
            value = (true.value - cmdp.shape[0] * low) / (high - low)
            mine = [value, *(true.excess / cmdp.cost_scale)]
            covered.append([bool(a.low - 1e-9 <= x <= a.high + 1e-9) for a, x in zip(sums.amounts, mine, strict=True)])
        before = time.process_time()
        session.update(play_episode(cmdp, round_, np.asarray(policy), "bandit", rng))
        slowest = max(slowest, time.process_time() - before)
    return {
        "world": name, "seed": seed, "logs": n_logs, "start": start, "settings": settings,
        "base": base.value / best.value, "values": values, "over": over, "covered": covered, "certified": plans,
        "first": first, "slowest": slowest,
    }  # fmt: skip


def table(file: Path) -> None:
    """What the draws of a file say, by world and number of logs."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    groups: dict[tuple, list[dict]] = {}
    for line in lines:
        groups.setdefault((line["world"], line["logs"], line["start"], json.dumps(line["settings"])), []).append(line)
    for key, found in groups.items():
        v = np.array([line["values"] for line in found])
        over = np.array([line["over"] for line in found])
        gap = 1.0 - v[:, 0].mean()
        closed = (v[:, -10:].mean() - v[:, 0].mean()) / gap if gap > 1e-9 else 1.0
        cover = [np.array(line["covered"][:1] or [[True, True]]) for line in found]
        every = [np.array(line["covered"] or [[True, True]]) for line in found]
        print(
            f"{key[0]:<14} {key[1]:>4} {key[2]} {key[3]} n={len(found)} base {found[0]['base']:.3f} "
            f"week 1 {v[:, 0].mean():.4f} "
            f"10 {v[:, min(9, v.shape[1] - 1)].mean():.4f} 30 {v[:, min(29, v.shape[1] - 1)].mean():.4f} "
            f"end {v[:, -10:].mean():.4f} closed {100 * closed:.0f} % | over {100 * (over > 1e-6).mean():.2f} % "
            f"worst {100 * over.max():+.1f} % first {100 * (over[:, 0] > 1e-6).mean():.1f} % | covered value "
            f"{100 * np.mean([c[0, 0] for c in cover]):.0f} "
            f"costs {100 * np.mean([c[0, 1:].mean() for c in cover]):.0f} "
            f"(all weeks {100 * np.mean([c[:, 0].mean() for c in every]):.0f}, "
            f"{100 * np.mean([c[:, 1:].mean() for c in every]):.0f}) certified "
            f"{100 * np.mean([np.mean(line['certified'] or [0]) for line in found]):.0f} % | first "
            f"{np.mean([line['first'] for line in found]):.1f} s slowest {max(line['slowest'] for line in found):.2f} s"
        )


def main() -> None:
    """Draw, and append to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--worlds", default=",".join((*NAMED, "garnet")))
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--first", type=int, default=9000)
    parser.add_argument("--logs", default="60")
    parser.add_argument("--weeks", type=int, default=100)
    parser.add_argument("--set", default="", help="settings of SafeStart: explore=0.5,least=5")
    parser.add_argument("--start", default="logs", choices=("logs", "policy", "nothing"))
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        return table(asked.out)
    settings = {key: float(value) for key, value in (part.split("=") for part in asked.set.split(",") if part)}
    for seed in range(asked.first, asked.first + asked.draws):
        for name in asked.worlds.split(","):
            for n in map(int, asked.logs.split(",")):
                line = draw(name, seed, n, asked.weeks, settings, asked.start)
                with asked.out.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
    return table(asked.out)


if __name__ == "__main__":
    main()
