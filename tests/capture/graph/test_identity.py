"""A node keeps its uid from the first walk that meets it to its death."""

from __future__ import annotations

import threading

import pytest
from graphs import leaf

from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take

pytestmark = pytest.mark.filterwarnings("error")


def test_a_node_keeps_its_uid_and_a_new_one_gets_a_new_one():
    identity = Identity()
    x = leaf(3)
    first = (x * 2).sum()
    one = take([first], identity=identity)
    assert list(take([first], identity=identity).uid) == list(one.uid)
    second = (x * 2).sum()
    two = take([second], identity=identity)
    assert two.uid[-1] == one.uid[-1]  # the leaf
    assert not set(two.uid[:-1]) & set(one.uid[:-1])


def test_a_leaf_that_died_does_not_pass_on_its_uid():
    identity = Identity()
    seen = set()
    for _ in range(20):
        x = leaf(3)
        seen.add(take([(x * 2).sum()], identity=identity).uid[-1])
        del x
    assert len(seen) == 20


def test_nodes_of_two_threads_with_one_number_are_distinguished():
    x = leaf(3)
    made = []

    def make():
        made.append((x * 2).sin())

    for _ in range(2):
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
    a, b = made
    assert (a.grad_fn._sequence_nr(), a.grad_fn.name()) == (b.grad_fn._sequence_nr(), b.grad_fn.name())
    identity = Identity()
    alone = take([b], identity=identity)
    both = take([a, b], identity=identity, previous=alone)
    assert len(set(both.uid)) == len(both.uid)
    uid_of_b = both.uid[both.roots[1].node]
    again = take([b, a], identity=identity, previous=both)
    assert again.uid[again.roots[0].node] == uid_of_b
    del a, made[0]
    assert take([b], identity=identity).uid[0] == uid_of_b


def test_identity_forgets_what_has_died():
    identity = Identity()
    take([leaf(3).sin().sum()], identity=identity)
    kept = take([leaf(3).cos().sum()], identity=identity)
    identity.forget_missing(kept.uid)
    assert len(identity) == len(kept)


def in_a_thread(work):
    made = []
    thread = threading.Thread(target=lambda: made.append(work()))
    thread.start()
    thread.join()
    return made[0]


def test_a_node_of_another_thread_does_not_inherit_the_uid_of_a_dead_one():
    identity, x = Identity(), leaf(3)
    first = in_a_thread(lambda: (x * 2).sin())
    identity.tell_apart(2)
    one = take([first], identity=identity)
    del first
    second = in_a_thread(lambda: (x * 2).sin())
    two = take([second], identity=identity, previous=one)
    assert not set(one.uid[:-1]) & set(two.uid[:-1]) and one.uid[-1] == two.uid[-1]
    assert list(take([second], identity=identity, previous=two).uid) == list(two.uid)


def test_a_node_that_was_known_before_the_threads_keeps_its_uid():
    identity, x = Identity(), leaf(3)
    own = in_a_thread(lambda: (x * 2).sin())  # as if this thread had begun at 0
    before = take([own], identity=identity)
    identity.tell_apart(100)
    assert list(take([own], identity=identity, previous=before).uid) == list(before.uid)
