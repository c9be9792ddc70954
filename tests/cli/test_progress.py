"""What a person is told when runs go on."""

import io

from rich.console import Console

from omdpd.cli.progress import Watch
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
    with Watch(console, [done, begun, waiting], tmp_path):
        pass
    assert console.file.getvalue().strip().splitlines() == [
        "1 of 3 runs are finished already", f"1 begun run goes on at episode {folder.episodes + 1}",
    ]  # fmt: skip
