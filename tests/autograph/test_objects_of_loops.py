"""After a loop of the program, names, lists and attributes hold as many objects, and the same ones, as eagerly: what is
changed in place through one shows through the others, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

X = np.arange(24, dtype=np.float32).reshape(12, 2)


def appended_then_renewed(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        made.append(w)
        w = w + r
    w[0] = 9
    return hf.stack(made)


def appended_what_was_there(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        made.append(w)
        _ = r * 2
    w[0] = 9
    return hf.stack(made)


def appended_to_two_lists(x: Any) -> Any:
    made, other = [], []
    for r in x:
        t = r + 1
        made.append(t)
        other.append(t)
    made[3][0] = 9
    return hf.stack(made), hf.stack(other)


def appended_twice(x: Any) -> Any:
    made = []
    for r in x:
        t = r + 1
        made.append(t)
        made.append(t)
    made[3][0] = 9
    return hf.stack(made)


def appended_in_a_tuple(x: Any) -> Any:
    made = []
    for r in x:
        t = r + 1
        made.append((t, r))
    t[0] = 9
    return hf.stack([a for a, b in made])


def appended_before_it_changes(x: Any) -> Any:
    made = []
    t = x[0] * 0
    for r in x:
        made.append(t)
        t = r + 1
    made[0][0] = 7
    t[0] = 9
    return hf.stack(made)


def two_names_for_one(x: Any) -> Any:
    u = x[0]
    for r in x:
        t = r + 1
        u = t
    t[0] = 9
    return u


def a_name_for_the_start(x: Any) -> Any:
    u = x[0] * 1
    w = u
    for r in x:
        u = u + r
    w[0] = 9
    return u


def the_one_before(x: Any) -> Any:
    u = x[0] * 1
    for r in x:
        prev = u
        u = u + r
    u[0] = 9
    return prev, u


def renewed_in_some_turns(x: Any) -> Any:
    u = x[0] * 1
    k = u
    for r in x:
        if r[0] > 1000:
            u = u + r
    u[0] = 9
    return k, u


def a_name_and_an_attribute(x: Any) -> Any:
    class S:
        pass

    s = S()
    s.a = x[0] * 1
    for r in x:
        t = r + 1
        s.a = t
    t[0] = 9
    return s.a


def lists_of_the_old_and_the_new(x: Any) -> Any:
    made, other = [], []
    w = x[0] * 1
    w0 = w
    for r in x:
        made.append(w)
        w = w + r
        other.append(w)
    made[3][0] = 9
    w0[1] = 5
    return hf.stack(made), hf.stack(other), w


def the_one_before_appended(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        prev = w
        made.append(prev)
        w = w + r
    prev[0] = 9
    return hf.stack(made)


def two_carried_names(x: Any) -> Any:
    u = x[0] * 1
    v = x[1] * 1
    for r in x:
        t = r + 1
        u = t
        v = t
    u[0] = 9
    return u, v


def bound_to_what_was_there(x: Any) -> Any:
    w = x[0] * 1
    for r in x:
        t = w
        s = r * 2
    t[0] = 9
    return w, s


def bound_to_what_turns_change(x: Any) -> Any:
    w = x[0] * 1
    for r in x:
        w[0] = w[0] + r[0]
        t = w
    t[1] = 3
    return t, w


def a_name_in_a_tuple(x: Any) -> Any:
    for r in x:
        a = r * 2
        b = a
        c = (a, b)
    c[0][0] = 9
    return a, b, c


def twice_in_a_dict(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        t = w + r
        made.append({"a": t, "b": t})
    made[-1]["a"][0] = 3
    return hf.stack([m["b"] for m in made]), t


def the_first_in_a_list(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        made.append(w)
        w = w + r
    made[0][0] = 77
    return hf.stack(made), w


def the_last_in_a_list(x: Any) -> Any:
    made = []
    w = x[0] * 1
    for r in x:
        w = w + r
        made.append(w)
    made[-1][0] = 77
    return hf.stack(made), w


def a_loop_in_a_loop(x: Any) -> Any:
    made = []
    for i in range(3, 12):
        for r in x:
            t = r + i
        made.append(t)
    t[0] = 9
    return hf.stack(made)


def chosen_then_appended(x: Any) -> Any:
    made = []
    for r in x:
        if r[0] > 5:
            t = r * 2
        else:
            t = r + 1
        made.append(t)
    t[0] = 9
    return hf.stack(made)


def two_names_for_a_list(x: Any) -> Any:
    for r in x:
        c = [r * 2]
        d = c
    c.append(r)
    return d, c


def a_list_in_a_list(x: Any) -> Any:
    made = []
    for r in x:
        c = [r * 2]
        made.append(c)
    c.append(r)
    return made[-1], c


def bound_to_a_list_that_was_there(x: Any) -> Any:
    keep = [x[0]]
    for r in x:
        t = keep
        s = r * 2
    t.append(x[1])
    return keep, s


def a_dict_in_a_dict(x: Any) -> Any:
    d = {}
    for r in x:
        e = {"a": r * 2}
        d["k"] = e
    e["b"] = x[0]
    return d, e


def a_name_for_a_list_that_is_renewed(x: Any) -> Any:
    keep = [x[0]]
    u = keep
    for r in x:
        u = [r * 2]
    u.append(x[1])
    return keep, u


def a_list_whose_item_changes(x: Any) -> Any:
    u = [x[0] * 1]
    k = u
    for r in x:
        u[0] = u[0] + r
    k.append(x[1])
    return u, k


def two_carried_lists(x: Any) -> Any:
    a = [x[0] * 1]
    b = a
    for r in x:
        a = [r + a[0]]
        b = a
    a.append(x[1])
    return a, b


def left_early(x: Any) -> Any:
    t = s = None
    for i in range(20):
        t = x[0] * i
        s = t
        if x[0][1] * i > 15:
            break
    t[0] = 100
    return s


def a_while(x: Any) -> Any:
    i = 0
    t = x[0] * 0
    s = t
    while x[0][1] * i < 15:
        t = x[0] * i
        s = t
        i += 1
    t[0] = 100
    return s


def a_list_that_was_there_appended(x: Any) -> Any:
    keep = [x[0]]
    made, last = [], x[0]
    for r in x:
        made.append(keep)
        last = r * 2
    keep.append(x[1])
    return made[3], last


def lists_in_a_list(x: Any) -> Any:
    made = []
    for r in x:
        made.append([r, 2 * r])
    made[2].append(x[1])
    made[-1].append(x[1])
    return made


def dicts_in_a_list(x: Any) -> Any:
    made = []
    for r in x:
        c = {"a": r}
        made.append(c)
    made[2]["b"] = x[0]
    return made


def returned_and_changed(x: Any) -> Any:
    h, k = x[0] * 1, x[0] * 1
    for r in x:
        h = h + r
        if h[0] > 50:
            k[0] = 3
            return h, k
    return h, k


def returned_where_it_is_an_attribute(x: Any) -> Any:
    class S:
        pass

    s = S()
    s.k = h = x[0] * 1
    while h[0] < 500:
        h = h + h + 1
        if h[0] > 50:
            s.k[0] = 3
            return s.k
    return h


def returned_what_the_turn_made_and_changed(x: Any) -> Any:
    h = x[0] * 1
    while h[0] < 500:
        h = h + h + 1
        t = h * 2
        if h[0] > 50:
            t[1] = 7
            return t, [t]
    return h, [h]


def _grown_until(k: Any, h: Any) -> Any:
    while h[0] < 500:
        h = h + h + 1
        if h[0] > 50:
            k[0] = 3
            return k
    return k


def returned_to_who_has_it(x: Any) -> Any:
    k = x[0] * 1
    found = _grown_until(k, x[0] * 1)
    found[1] = 5
    return k, found


def bound_and_then_changed_in_some_turns(x: Any) -> Any:
    for r in x:
        t = r * 2
        if r[0] > 5:
            t[0] = 3
    return t


def lists_of_one_two_turns_apart(x: Any) -> Any:
    a, b, c = x[0] * 1, x[1] * 1, x[2] * 1
    made, other = [], []
    for r in x:
        made.append(a)
        other.append(c)
        a, b, c = b, c, r * 2
    made[5][0] = 7
    return made, other


def renewed_by_what_was_there(x: Any) -> Any:
    w, u = x[0] * 1, x[1] * 1
    made = []
    for _ in x:
        made.append(u)
        u = w
    made[3][0] = 9
    return made, w


def in_turn_one_and_the_other(x: Any) -> Any:
    a, b = x[0] * 1, x[1] * 1
    made = []
    for _ in x:
        a, b = b, a
        made.append(a)
    made[3][0] = 7
    return made


def the_latest_that_was_chosen(x: Any) -> Any:
    o = []
    best = x[0] * 1
    for r in x:
        if r[0] > 4:
            best = r * 1
        o.append(best)
    o[1][0] = 77
    return hf.stack(o)


def one_that_is_in_the_list_too(x: Any) -> Any:
    o = []
    best = x[0] * 1
    for r in x:
        t = r * 2
        o.append(t)
        if r[0] < 4:
            best = t
    best[0] = 99
    return hf.stack(o), best


def one_of_two_that_were_there(x: Any) -> Any:
    o = []
    a = x[0] * 1
    b = x[1] * 1
    for r in x:
        o.append(a if r[0] > 4 else b)
    o[1][0] = 99
    return hf.stack(o)


def one_of_two_in_another_list(x: Any) -> Any:
    o = []
    p = []
    for r in x:
        t = r * 2
        u = r * 3
        o.append(t)
        p.append(t if r[0] > 4 else u)
    o[3][0] = 99
    return hf.stack(o), hf.stack(p)


def a_name_for_one_of_two(x: Any) -> Any:
    for r in x:
        t = r * 2
        u = r * 3
        v = t if r[0] > 4 else u
    t[0] = 9
    return v


def renewed_on_both_ways(x: Any) -> Any:
    o = []
    h = x[0] * 1
    for r in x:
        if r[0] > 4:
            h = h + 1
        else:
            h = r * 2
        o.append(h)
    o[2][0] = 5
    o[-1][0] = 7
    return hf.stack(o), h


def renewed_twice_in_some_turns(x: Any) -> Any:
    o = []
    h = x[0] * 1
    for r in x:
        h = h + r
        if h[0] > 10:
            h = h * 2
        o.append(h)
    o[2][0] = 5
    return hf.stack(o), h


def one_of_two_new_ones(x: Any) -> Any:
    o = []
    for r in x:
        t = r * 2
        u = r * 3
        v = t if r[0] > 4 else u
        o.append(v)
    o[2][0] = 9
    return hf.stack(o)


SAME = [
    renewed_on_both_ways,
    renewed_twice_in_some_turns,
    one_of_two_new_ones,
    returned_and_changed,
    returned_where_it_is_an_attribute,
    returned_what_the_turn_made_and_changed,
    returned_to_who_has_it,
    bound_and_then_changed_in_some_turns,
    appended_then_renewed,
    appended_what_was_there,
    appended_to_two_lists,
    appended_twice,
    appended_in_a_tuple,
    appended_before_it_changes,
    two_names_for_one,
    a_name_for_the_start,
    the_one_before,
    a_name_and_an_attribute,
    the_one_before_appended,
    two_carried_names,
    bound_to_what_was_there,
    bound_to_what_turns_change,
    a_name_in_a_tuple,
    twice_in_a_dict,
    the_first_in_a_list,
    the_last_in_a_list,
    a_loop_in_a_loop,
    chosen_then_appended,
    a_name_for_a_list_that_is_renewed,
    a_list_whose_item_changes,
    left_early,
    a_list_that_was_there_appended,
    lists_in_a_list,
    dicts_in_a_list,
]

REFUSED = [
    the_latest_that_was_chosen,
    one_that_is_in_the_list_too,
    one_of_two_that_were_there,
    one_of_two_in_another_list,
    a_name_for_one_of_two,
    lists_of_one_two_turns_apart,
    in_turn_one_and_the_other,
    renewed_by_what_was_there,
    renewed_in_some_turns,
    lists_of_the_old_and_the_new,
    two_names_for_a_list,
    a_list_in_a_list,
    bound_to_a_list_that_was_there,
    a_dict_in_a_dict,
    two_carried_lists,
    a_while,
]


@pytest.mark.parametrize("program", SAME)
def test_objects_are_those_of_eager_code(program: Callable[..., Any]) -> None:
    expected, found = program(hf.constant(X)), hf.function(program)(hf.constant(X))
    assert hf.tree.structure(found) == hf.tree.structure(expected)
    for one, other in zip(hf.tree.leaves(found), hf.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", REFUSED)
def test_what_may_be_one_of_several_objects_is_not_changed(program: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match="changed in place, and it depends on a tensor which of several"):
        hf.function(program, strict=True)(hf.constant(X))
