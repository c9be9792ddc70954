import pytest
from cluster_programs import dask_cluster, sweep_with_a_loss
from real_commands import omdpd, write_experiment

from omdpd.experiments.executors import executor
from omdpd.problem.arrays import InvalidInputError

pytest.importorskip("distributed")


@pytest.mark.parametrize("options", [(), ("--no-shared-disk",)], ids=["shared disk", "no shared disk"])
def test_a_sweep_survives_the_loss_of_a_worker_and_ends_as_in_one_process(tmp_path, options):
    with dask_cluster(tmp_path) as (address, workers):
        sweep_with_a_loss(tmp_path, "dask", address, workers[1].kill, *options)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_a_scheduler_that_does_not_answer_is_one_sentence(monkeypatch, address):
    monkeypatch.setattr("omdpd.experiments.executors.CALL_SECONDS", 1.0)
    refused = pytest.raises(InvalidInputError, match=f"no Dask scheduler answers at {address}")
    with refused, executor("dask", 1, address):
        pass


def test_a_cluster_of_dasks_own_is_started_and_ended(tmp_path):
    file, out = write_experiment(tmp_path, episodes=20), tmp_path / "out"
    code, said = omdpd("run", file, "--out", out, "--on", "dask", "--jobs", 2)
    assert code == 0, said
    assert "Traceback" not in said
