"""What a person is told when runs go on."""

import io

from rich.console import Console

from omdpd.cli.live_view import LiveView
from omdpd.experiments.one_run import advance, run
from omdpd.experiments.spec import RunSpec
from omdpd.storage.run_folder import RunFolder
from tests.references.named import LEARNERS, NATURES, WORLDS


def test_a_resumed_run_says_where_it_goes_on(tmp_path):
    parts = WORLDS["cyclic"](), NATURES["noisy"](), LEARNERS["Uniform"]()
    done, begun, waiting = (RunSpec(*parts, 2500, seed) for seed in range(3))
    run(done, tmp_path / done.id)
    folder = RunFolder(tmp_path / begun.id, begun.id)
    assert advance(begun, folder, None, 1e9, seconds=0.0) is None
    console = Console(file=io.StringIO(), width=120)
    with LiveView(console, [done, begun, waiting], tmp_path):
        pass
    assert console.file.getvalue().strip().splitlines() == [
        "1 of 3 runs are finished already", f"1 begun run goes on at episode {folder.episodes + 1}",
    ]  # fmt: skip


def test_how_long_it_will_take_is_not_told_from_the_first_episodes(tmp_path):
    parts = WORLDS["cyclic"](), NATURES["noisy"](), LEARNERS["Uniform"]()
    console = Console(file=io.StringIO(), width=120)
    view = LiveView(console, [RunSpec(*parts, 1000, 0)], tmp_path)
    for completed in (0, 1, 500):
        view._say(completed)
    assert ["to go" in line for line in console.file.getvalue().splitlines()] == [False, False, True]
