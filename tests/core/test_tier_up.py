"""When what comes again and again is compiled."""

from __future__ import annotations

import threading

import pytest

from hybridflow.core.tier_up import Tier, TierUp, is_tried_again, remember

pytestmark = pytest.mark.code


def times_until_due(counter: TierUp, key: object, group: int = 0) -> int:
    return next(time for time in range(1, 1 << 12) if counter.is_due(key, group))


def test_a_key_is_due_until_it_is_tried() -> None:
    counter = TierUp(Tier(3, capacity=4))
    assert [counter.is_due("a") for _ in range(5)] == [False, False, True, True, True]
    assert not counter.is_due("b")
    counter.begin_try("a")
    assert [counter.is_due("a") for _ in range(9)] == [False] * 9
    counter.reset("a")  # something was made
    assert times_until_due(counter, "a") == 3
    counter.give_up("b")
    assert not any(counter.is_due("b") for _ in range(9))
    assert times_until_due(TierUp(Tier(1, capacity=1)), "x") == 1


def test_tries_put_off_those_of_their_group() -> None:
    counter = TierUp(Tier(2, backoff=4, capacity=100), groups=2)
    waited = []
    for key in range(12):
        waited.append(times_until_due(counter, key))
        counter.begin_try(key)
    assert waited == [2] * 4 + [4] * 4 + [8] * 4
    assert times_until_due(counter, "other", 1) == 2
    counter.clear()
    assert len(counter) == 0 and times_until_due(counter, 0) == 2
    for _ in range(1000):
        counter.begin_try("never", 1)
    assert not counter.is_due("late", 1)  # and no number of a thousand digits


@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_the_oldest_are_forgotten(capacity: int) -> None:
    table: dict[int, int] = {}
    for key in range(20):
        remember(table, key, -key, capacity)
        remember(table, key, key, capacity)  # what is there makes no room
        assert list(table) == [*range(max(0, key - capacity + 1), key + 1)]
    counter = TierUp(Tier(3, capacity=capacity))
    for key in range(20):
        counter.is_due(key)
        counter.give_up(key)
    assert len(counter) == capacity and not counter.is_due(19) and len(counter) == capacity


def test_threads_count_at_once() -> None:
    """A count may be lost, no entry too many stays, and nothing is raised."""
    counter, errors = TierUp(Tier(1 << 30, capacity=8)), []

    def work(start: int) -> None:
        try:
            for key in range(start, start + 3000):
                counter.is_due(key % 50)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(7 * k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(counter) <= 8 + len(threads)


def test_pauses_double() -> None:
    assert [count for count in range(1, 70) if is_tried_again(count)] == [1, 2, 4, 8, 16, 32, 64]
