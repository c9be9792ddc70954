import json
import shutil
import signal
import threading
from concurrent.futures import Executor, Future

import numpy as np
import pytest

import omdpd.play.loop
from omdpd.experiments import one_run
from omdpd.experiments.executors import InProcess, executor
from omdpd.experiments.many_runs import run_all
from omdpd.experiments.one_run import RunFailedError, run, scene_of
from omdpd.experiments.spec import RunSpec
from omdpd.storage.atomic import RecordError
from omdpd.storage.run_folder import RunFolder
from tests.references.columns import same_columns
from tests.references.instances import forward
from tests.references.named import LEARNERS, NATURES, WORLDS

WORLD = WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=4, binding=False)
K = 12


def spec_of(learner="ProximalOMDPD.cautious", nature="pool", seed=3, episodes=K):
    return RunSpec(WORLD, NATURES[nature](), LEARNERS[learner](), episodes, seed)


def timeless(summary):
    return {key: value for key, value in summary.items() if key != "seconds"}


class Killed(BaseException):
    """Something no part of the library catches."""


def kill_after(monkeypatch, n):
    """The process dies in the middle of episode n (counted from one)."""
    real, calls = omdpd.play.loop.play_judged, iter(range(1, 10**6))

    def play_judged(*arguments):
        if next(calls) == n:
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(omdpd.play.loop, "play_judged", play_judged)


def play_until_killed(monkeypatch, spec, folder, n):
    """Play a run that is killed in its n-th episode from here."""
    with monkeypatch.context() as patch:
        kill_after(patch, n)
        with pytest.raises(Killed):
            run(spec, folder)


def commit_every_episode(monkeypatch):
    monkeypatch.setenv("OMDPD_COMMIT_SECONDS", "0")


@pytest.mark.parametrize("nature", ["noisy", "pool", "anchored"])
@pytest.mark.parametrize(
    "learner", ["ProximalOMDPD.cautious", "ProximalOMDPD.optimistic", "OMDPD.tuned", "OptCMDP", "SinhaVaze"]
)
def test_a_run_that_was_killed_and_resumed_is_identical_to_the_last_bit(tmp_path, monkeypatch, learner, nature):
    spec = spec_of(learner, nature)
    whole = run(spec, tmp_path / "whole")
    commit_every_episode(monkeypatch)
    for n in (5, 4):  # killed in episode 5, then in the fourth episode after that
        play_until_killed(monkeypatch, spec, tmp_path / "killed", n)
        assert RunFolder(tmp_path / "killed").summary is None
    assert RunFolder(tmp_path / "killed").episodes == 7
    resumed = run(spec, tmp_path / "killed")
    assert timeless(resumed) == timeless(whole)
    rows, expected = (RunFolder(tmp_path / name).rows() for name in ("killed", "whole"))
    assert same_columns(rows, expected)


def test_a_run_killed_before_its_first_commit_starts_again(tmp_path, monkeypatch):
    spec = spec_of()
    whole = run(spec, tmp_path / "whole")
    play_until_killed(monkeypatch, spec, tmp_path / "killed", 3)
    assert RunFolder(tmp_path / "killed").episodes == 0
    assert timeless(run(spec, tmp_path / "killed")) == timeless(whole)


def test_a_finished_run_is_not_played_again(tmp_path, monkeypatch):
    spec = spec_of()
    first = run(spec, tmp_path)
    kill_after(monkeypatch, 1)
    assert run(spec, tmp_path) == first


def test_a_run_that_died_between_its_last_episode_and_its_summary_needs_no_episode(tmp_path, monkeypatch):
    spec = spec_of()
    first = run(spec, tmp_path)
    (tmp_path / "summary.json").unlink()
    kill_after(monkeypatch, 1)
    assert run(spec, tmp_path) == first


def test_results_do_not_depend_on_order_or_on_other_runs(tmp_path):
    specs = [spec_of(seed=seed, nature=nature) for nature in ("noisy", "pool") for seed in (0, 1)]
    forwards = run_all(specs, tmp_path / "forwards", InProcess(), lambda done: None)
    backwards = run_all(specs[::-1], tmp_path / "backwards", InProcess(), lambda done: None)
    alone = [run(spec, tmp_path / "alone" / spec.id) for spec in specs]
    for a, b, c in zip(forwards, backwards[::-1], alone, strict=True):
        assert timeless(a) == timeless(b) == timeless(c)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    specs = [spec_of(seed=seed) for seed in range(3)]
    here = run_all(specs, tmp_path / "one", InProcess(), lambda done: None)
    with executor("local", 2) as pool:
        there = run_all(specs, tmp_path / "two", pool, lambda done: None)
    assert [timeless(s) for s in here] == [timeless(s) for s in there]


def test_summaries_come_in_the_order_of_the_specs_and_everyone_is_told_of(tmp_path):
    specs = [spec_of("Uniform", seed=seed) for seed in (4, 2, 9)]
    told = []
    summaries = run_all(specs, tmp_path, InProcess(), told.extend)
    assert [s["seed"] for s in summaries] == [4, 2, 9]
    assert {spec.seed for spec in told} == {4, 2, 9}


def test_two_learners_with_one_seed_meet_the_same_world_and_rounds():
    one, other = scene_of(spec_of("Uniform", "pool")), scene_of(spec_of("SinhaVaze", "pool"))
    assert np.array_equal(one.cmdp.transition, other.cmdp.transition)
    nowhere = np.zeros(one.cmdp.shape)
    for k in range(5):
        assert np.array_equal(one.nature.draw(k, nowhere).cost, other.nature.draw(k, nowhere).cost)


def test_seeds_and_natures_are_streams_of_their_own():
    assert not np.array_equal(scene_of(spec_of(seed=1)).cmdp.transition, scene_of(spec_of(seed=2)).cmdp.transition)
    assert np.array_equal(
        scene_of(spec_of(nature="pool")).cmdp.transition, scene_of(spec_of(nature="noisy")).cmdp.transition
    )


def test_rows_and_summary_agree_with_the_truth_worked_out_again(tmp_path):
    spec = spec_of("Uniform", "fixed")
    summary = run(spec, tmp_path)
    rows = RunFolder(tmp_path).rows()
    cmdp = scene_of(spec).cmdp
    H, S, A = cmdp.shape
    q = forward(np.full((H, S, A), 1.0 / A), cmdp.transition, cmdp.initial)
    value, paid = (cmdp.reward * q).sum(), (cmdp.excess[0] * q).sum()
    assert rows["episode"].tolist() == list(range(1, K + 1))
    assert rows["value"].tolist() == pytest.approx([value] * K)
    assert rows["excess"][:, 0].tolist() == pytest.approx([paid] * K)
    assert summary["violation"] == pytest.approx(K * max(paid, 0.0))
    assert summary["regret"] == pytest.approx(K * (summary["comparator_value"] - value))


def test_rows_say_where_the_good_event_held(tmp_path):
    run(spec_of("OMDPD.tuned", "noisy"), tmp_path)
    rows = RunFolder(tmp_path).rows()
    assert "good_event" in rows
    assert set(rows["good_event"].tolist()) <= {True, False}
    assert set(rows["optimism"].tolist()) <= {True, False}


def test_a_run_that_fails_keeps_its_error_and_the_others_go_on(tmp_path, monkeypatch):
    specs = [spec_of("Uniform", seed=seed) for seed in (0, 1)]
    real = omdpd.play.loop.play_judged

    def play_judged(cmdp, *arguments):
        if np.array_equal(cmdp.reward, scene_of(specs[0]).cmdp.reward):
            raise ZeroDivisionError("a bad day")
        return real(cmdp, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(omdpd.play.loop, "play_judged", play_judged)
        with pytest.raises(RunFailedError, match=r"1 of 2 runs failed; .*a bad day"):
            run_all(specs, tmp_path, InProcess(), lambda done: None)
    assert "a bad day" in RunFolder(tmp_path / specs[0].id).error["error"]
    assert RunFolder(tmp_path / specs[1].id).summary is not None
    # It is not tried again until its error is removed.
    with pytest.raises(RunFailedError, match="1 of 2 runs failed"):
        run_all(specs, tmp_path, InProcess(), lambda done: None)
    (tmp_path / specs[0].id / "error.json").unlink()
    assert len(run_all(specs, tmp_path, InProcess(), lambda done: None)) == 2


def test_a_folder_of_another_run_is_refused(tmp_path):
    run(spec_of(seed=1), tmp_path)
    (tmp_path / "summary.json").unlink()
    with pytest.raises(RecordError, match="belongs to the run"):
        run(spec_of(seed=2), tmp_path)


def test_half_written_files_of_a_dead_process_are_ignored(tmp_path, monkeypatch):
    spec = spec_of()
    whole = run(spec, tmp_path / "whole")
    commit_every_episode(monkeypatch)
    play_until_killed(monkeypatch, spec, tmp_path / "killed", 6)
    folder = tmp_path / "killed"
    (folder / ".commit.json.4711.tmp").write_bytes(b'{"half": ')
    # Files of the commit that never came about: written whole, but not named by commit.json.
    (folder / "rows-000099.npz").write_bytes(b"not a table")
    (folder / "state-000099.npz").write_bytes(b"not a state")
    assert timeless(run(spec, folder)) == timeless(whole)


@pytest.mark.parametrize("kind", ["rows", "values", "state"])
def test_a_damaged_file_is_refused_by_name_and_not_used(tmp_path, monkeypatch, kind):
    spec = spec_of()
    commit_every_episode(monkeypatch)
    play_until_killed(monkeypatch, spec, tmp_path, 6)
    file = sorted(tmp_path.glob(f"{kind}-*"))[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(RecordError, match=rf"{file.name} is damaged: its checksum"):
        run(spec, tmp_path)


def test_a_missing_file_is_refused_by_name(tmp_path, monkeypatch):
    spec = spec_of()
    commit_every_episode(monkeypatch)
    play_until_killed(monkeypatch, spec, tmp_path, 4)
    file = next(iter(tmp_path.glob("state-*")))
    file.unlink()
    with pytest.raises(RecordError, match=file.name):
        run(spec, tmp_path)


def test_a_cut_off_commit_file_is_refused_with_a_sentence(tmp_path, monkeypatch):
    spec = spec_of()
    commit_every_episode(monkeypatch)
    play_until_killed(monkeypatch, spec, tmp_path, 4)
    file = tmp_path / "commit.json"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(RecordError, match=r"commit\.json"):
        run(spec, tmp_path)


def test_a_copied_folder_goes_on_like_the_original(tmp_path, monkeypatch):
    spec = spec_of()
    commit_every_episode(monkeypatch)
    play_until_killed(monkeypatch, spec, tmp_path / "here", 6)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    assert timeless(run(spec, tmp_path / "here")) == timeless(run(spec, tmp_path / "there"))


def test_a_summary_is_plain_json_with_nulls_for_what_is_undefined(tmp_path):
    summary = run(spec_of("Uniform", "independent", episodes=60), tmp_path)
    stored = json.loads((tmp_path / "summary.json").read_text())
    assert {key: stored[key] for key in summary} == summary
    assert set(stored) - set(summary) == {"sha256", "format", "commit"}
    assert stored["comparator_exists"] is False
    assert stored["regret"] is None
    assert stored["comparator_value"] is None
    assert stored["violation"] > 0.0


def test_equal_specs_have_equal_names_and_others_do_not():
    assert spec_of().id == spec_of().id
    others = [spec_of(seed=4), spec_of(nature="noisy"), spec_of("Uniform"), spec_of(episodes=K + 1)]
    assert len({spec_of().id, *(spec.id for spec in others)}) == 5


def test_the_comparator_of_tables_that_never_repeat_is_found_once(tmp_path, monkeypatch):
    found, find = [], one_run.met_comparator

    def counted(scene, end):
        found.append(scene.nature)
        return find(scene, end)

    monkeypatch.setattr(one_run, "met_comparator", counted)
    monkeypatch.setattr(one_run, "_COMPARATORS", {})
    monkeypatch.setattr(one_run, "MAX_COMPARATORS", 1)

    def played(nature, learner, episodes=K, seed=0):
        spec = spec_of(learner, nature, seed, episodes)
        return run(spec, tmp_path / spec.id)

    first, second = played("anchored", "Uniform"), played("anchored", "ProximalOMDPD.cautious")
    assert len(found) == 1
    assert first["comparator_value"] == second["comparator_value"]
    other = played("anchored", "Uniform", seed=1)
    assert other["comparator_value"] != first["comparator_value"]
    assert played("anchored", "Uniform", episodes=K + 1)["comparator_exists"] == first["comparator_exists"]
    assert len(found) == 3
    assert len(one_run._COMPARATORS) == 1, "only so many are kept"
    played("pool", "Uniform")
    played("pool", "ProximalOMDPD.cautious")
    assert len(found) == 5, "which tables of a pool come is a matter of the run"


class Interrupted(threading.Condition):
    """A future's lock; the n-th time that the main thread takes it, Ctrl-C comes before its block is entered."""

    def __init__(self, countdown):
        super().__init__()
        self.countdown = countdown

    def __enter__(self):
        taken = super().__enter__()
        if threading.current_thread() is threading.main_thread() and next(self.countdown, None) == 0:
            signal.raise_signal(signal.SIGINT)
        return taken


class Threads(Executor):
    """Plays every run in a thread; its futures are interrupted as they are touched for the n-th time."""

    def __init__(self, n):
        self.countdown, self.futures, self.release = iter(range(n, -1, -1)), [], threading.Event()

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future._condition = Interrupted(self.countdown)
        self.futures.append(future)
        threading.Thread(target=self._play, args=(future,), daemon=True).start()
        return future

    def _play(self, future):
        self.release.wait()
        if future.set_running_or_notify_cancel():
            future.set_result({})

    def free(self, future):
        """Whether another thread than the main one can take this future's lock."""
        answer = []
        other = threading.Thread(target=lambda: answer.append(future._condition.acquire(blocking=False)))
        other.start()
        other.join()
        return answer[0]


@pytest.fixture
def hearing_ctrl_c():
    """Ctrl-C raises, whatever these tests inherited: a shell's background makes a process deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hearing_ctrl_c")
@pytest.mark.parametrize("n", range(16))
def test_ctrl_c_while_a_future_is_touched_leaves_no_lock_taken(tmp_path, n):
    workers = Threads(n)
    specs = [spec_of(seed=seed) for seed in range(3)]
    watched = []

    def watch(done):
        workers.release.set()  # the runs end once all of them are on their way
        watched.extend(done)

    try:
        run_all(specs, tmp_path, workers, watch)
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    workers.release.set()
    assert all(workers.free(future) for future in workers.futures)
    assert interrupted == (next(workers.countdown, None) is None)
    assert interrupted or len(watched) == 3
