"""How long a request may take, and how much of the time the learner takes."""

import asyncio
from types import SimpleNamespace

import pytest

from omdpd.serve import desk as service
from omdpd.serve.app import Application, Deadlines
from omdpd.serve.desk import MANY_WAIT, MOST_REST, RESTS, Desk

FOREVER = 1e6


async def forever():
    await asyncio.Event().wait()


def test_only_a_request_that_takes_too_long_is_cancelled():
    async def run():
        deadlines, tasks = Deadlines(), [asyncio.create_task(forever()) for _ in range(3)]
        for task, seconds in zip(tasks, (0.0, FOREVER, 0.0), strict=True):
            deadlines.begin(task, seconds)
        await asyncio.wait(tasks[::2])
        assert [task.cancelled() for task in tasks] == [True, False, True]
        assert [deadlines.end(task) for task in tasks] == [False, True, False]
        assert not deadlines.end(tasks[1])
        tasks[1].cancel()

    asyncio.run(run())


def test_the_clock_is_wound_up_for_the_next_request_and_for_one_that_has_less_time():
    async def run():
        deadlines, patient = Deadlines(), asyncio.create_task(forever())
        deadlines.begin(patient, FOREVER)
        for _ in range(3):
            task = asyncio.create_task(forever())
            deadlines.begin(task, 0.0)
            await asyncio.wait([task])
            assert task.cancelled()
        assert deadlines.end(patient)
        patient.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("late", [True, False])
def test_a_request_that_is_late_is_refused_and_one_that_is_cancelled_is_not(late):
    async def run():
        application = Application({}, None, ["here"], 1.0)
        application.seconds = 0.0 if late else FOREVER
        application._answer = lambda scope, receive: forever()
        task = asyncio.create_task(application._answered({}, None))
        await asyncio.sleep(0)
        if late:
            assert (await task).status == 408
            assert not task.cancelling()
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())


def test_the_learner_rests_less_the_more_episodes_wait(monkeypatch):
    now, rests, left = [0.0], [], [0, MANY_WAIT // 2, MANY_WAIT, 10 * MANY_WAIT, 0]
    took = [1e-4, 1e-4, 1e-4, 1e-4, 1.0]
    session = SimpleNamespace(waiting=0, lag=lambda: None)
    desk = Desk("here", session, FOREVER)

    def learn_next():
        session.waiting = left.pop(0)
        now[0] += took.pop(0)
        desk._stopping = not left
        return True

    session.learn_next = learn_next
    monkeypatch.setattr(service, "time", SimpleNamespace(perf_counter=lambda: now[0], sleep=rests.append))
    desk._learn()
    assert rests == pytest.approx([RESTS * 1e-4, RESTS * 0.5e-4, MOST_REST])
