import os
from contextlib import suppress

import pytest

from omdpd.experiments.executors import executor
from omdpd.problem.arrays import InvalidInputError
from tests.references.cluster_programs import dask_cluster, sweep_with_a_loss, sweep_without_a_leader
from tests.references.real_commands import PATIENCE, omdpd, write_experiment

pytest.importorskip("distributed")


@pytest.mark.parametrize("options", [(), ("--no-shared-disk",)], ids=["shared disk", "no shared disk"])
def test_a_sweep_survives_the_loss_of_a_worker_and_ends_as_in_one_process(tmp_path, options):
    with dask_cluster(tmp_path) as cluster:
        sweep_with_a_loss(tmp_path, "dask", cluster.address, cluster.others[1].kill, *options)


def test_a_scheduler_that_dies_ends_the_study_with_a_sentence_and_the_same_command_goes_on(tmp_path):
    with dask_cluster(tmp_path) as cluster:
        code, said = sweep_without_a_leader(tmp_path, "dask", cluster)
    assert code == 2, said
    assert "the same command goes on" in " ".join(said.split())


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


def listening():
    """The addresses that something on this machine listens at, by the inode of the socket."""
    found = {}
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as table:
            for words in (line.split() for line in list(table)[1:]):
                if words[3] == "0A":
                    found[words[9]] = words[1].split(":")[0]
    return found


def sockets_of(pid):
    """The inodes of the sockets of a process and its descendants."""
    found = set()
    for handle in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{handle}")
            found |= {target[8:-1]} if target.startswith("socket:[") else set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                found |= sockets_of(int(child))
    return found


def test_a_cluster_that_is_started_here_listens_on_the_loopback_address_only():
    with executor("dask", 1) as pool:
        assert pool.submit(abs, -1).result(timeout=PATIENCE) == 1
        everywhere = listening()
        ours = {everywhere[inode] for inode in sockets_of(os.getpid()) if inode in everywhere}
    assert ours == {"0100007F"}


def test_a_second_cluster_finds_a_port_of_its_own():
    with executor("dask", 1) as one, executor("dask", 1) as two:  # a warning would be an error here
        assert [pool.submit(abs, -1).result(timeout=PATIENCE) for pool in (one, two)] == [1, 1]
