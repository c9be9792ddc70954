import os
import signal
import sys

import pytest
from cluster_programs import RAY, ray_cluster, sweep_with_a_loss, sweep_without_a_leader
from real_commands import PATIENCE, start_program

from omdpd.experiments.executors import executor
from omdpd.problem.arrays import InvalidInputError

pytest.importorskip("ray")

# In a process of its own, because Ray leaves threads behind in the one that it was started from.
RAYS_OWN = """
from omdpd.problem.arrays import InvalidInputError
from omdpd.experiments.executors import executor

def fail():
    raise InvalidInputError("a bad day")

import sys
with executor("ray", 1, sys.argv[1]) as tasks:
    error = tasks.submit(fail).exception(timeout=60)
    assert type(error) is InvalidInputError, type(error)
    print("refused:", error)
"""


def omdpd_python(text, folder, *words):
    process = start_program([sys.executable, "-c", text, *words], RAY, cwd=folder)
    said, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def test_a_sweep_survives_the_loss_of_a_node_and_ends_as_in_one_process(tmp_path):
    with ray_cluster(tmp_path) as cluster:
        lose = lambda: os.killpg(cluster.others[0].pid, signal.SIGKILL)  # noqa: E731
        sweep_with_a_loss(tmp_path, "ray", cluster.address, lose)


def test_a_head_that_dies_ends_the_study_with_a_sentence_and_the_same_command_goes_on(tmp_path):
    with ray_cluster(tmp_path) as cluster:
        code, said = sweep_without_a_leader(tmp_path, "ray", cluster)
    assert code == 2, said
    assert "the same command goes on" in " ".join(said.split())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense", "127.0.0.1:99999"])
def test_a_cluster_that_does_not_answer_is_one_sentence(monkeypatch, address):
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInputError, match=f"no Ray cluster answers at {address}"), executor("ray", 1, address):
        pass


def test_a_run_that_fails_raises_its_own_error_and_not_rays(tmp_path):
    """A task's error comes back as it was."""
    with ray_cluster(tmp_path) as cluster:
        code, said = omdpd_python(RAYS_OWN, tmp_path, cluster.address)
    assert code == 0, said
    assert "refused: a bad day" in said


def test_no_cluster_of_rays_is_started_because_it_would_listen_everywhere():
    with (
        pytest.raises(InvalidInputError, match=r"Ray needs an --address: .* listens on all interfaces"),
        executor("ray", 1),
    ):
        pass
