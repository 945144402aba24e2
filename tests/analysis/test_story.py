"""How a failing call met what an earlier one had run."""

from dataclasses import replace

from handmade import HELD, N, graph, leaf
from test_diagnosis import second_backward

from graphwidget.analysis.story import failed_meeting, own_path, passing, path_to, root_name
from graphwidget.model import CellRun, Place, Record, Snapshot, TensorRef


def meeting():
    record = second_backward()
    return failed_meeting(record, record.calls[1])


def test_the_old_part_is_what_the_earlier_call_ran_and_the_border_where_the_new_part_meets_it():
    told = meeting()
    assert told.old == {2} and told.boundary == (2,) and told.new == {0, 1}
    assert told.needed == {0, 1, 2}
    assert told.leaves_lost == ("t", "a")
    assert told.in_loop and told.built_after and told.brings_leaves
    assert not told.same_root and not told.carried_state


def test_a_call_whose_graph_or_freeing_call_is_unknown_has_no_meeting():
    record = second_backward()
    assert failed_meeting(record, replace(record.calls[1], graph=None)) is None
    assert failed_meeting(record, replace(record.calls[1], freed_by=7)) is None


def test_names_that_ipython_made_are_not_the_users():
    assert own_path(TensorRef(0, 0, ("_", "_3", "Out[3]", "loss"))) == "loss"
    assert own_path(TensorRef(0, 0, ("_",))) is None
    call = replace(second_backward().calls[0], roots=(TensorRef(0, 0, ("step:loss",)),))
    assert root_name(call) == "loss"


def test_the_shortest_way_to_a_node():
    shot = graph(N("a", "b c", (HELD,)), N("b", "c"), N("c", "w"), leaf("w"))
    assert path_to(shot, [TensorRef(0)], 2) == (0, 2)
    assert path_to(shot, [TensorRef(1)], 0) == ()


def test_the_loop_of_an_iteration_is_named_where_there_are_several():
    cell = "for epoch in range(2):\n    for i, x in xs:\n        h = f(h, x)\n    g(h)\nfor x in xs:\n    g(x)\n"
    function = "def g(h):\n    while h > 1:\n        h = h / 2\n"
    record = Record(Snapshot(), (), (), {0: CellRun(0, 1, function), 1: CellRun(1, 2, cell)})

    def said(line, inner=None):
        return passing(record, Place(*(inner or (2, line)), "", 2, line, "", 3, run=1))

    assert said(3) == "iteration 3 of `for i, x`"
    assert said(4) == "iteration 3 of `for epoch`"
    assert said(6) == "iteration 3"
    assert said(6, inner=(1, 3)) == "iteration 3 of `for x`"
