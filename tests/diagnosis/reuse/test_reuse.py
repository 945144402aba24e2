"""What two calls share: the old part and the new, the carrier, the names."""

from array import array
from dataclasses import replace

from build import FREED, HELD, N, graph, leaf
from records import place, placed, second_backward

from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.graph_paths import path_to
from graphwidget.diagnosis.reuse.reuse import Reuse, reuse_of
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.wording import iteration_text, own_path, root_name
from graphwidget.model import BackwardCall, CellRun, Owner, Place, Record, Snapshot, TensorRef


def reuse():
    record = second_backward()
    return reuse_of(record, record.calls[1])


def test_the_old_part_is_what_the_earlier_call_ran_and_the_border_where_the_new_part_leads_into_it():
    shared = reuse()
    assert shared.old == {2} and shared.boundary == (2,) and shared.new == {0, 1}
    assert shared.needed == {0, 1, 2}
    assert shared.built_after and shared.brings_leaves and not shared.same_root


def test_the_setting_knows_the_loop_and_the_names():
    setting = Setting(reuse())
    assert setting.leaf_names(setting.reuse.exclusive_leaves) == ("t", "a")
    assert setting.in_loop and not setting.carried_state


def test_a_call_whose_graph_or_freeing_call_is_unknown_has_no_reuse():
    record = second_backward()
    assert reuse_of(record, replace(record.calls[1], graph=None)) is None
    assert reuse_of(record, replace(record.calls[1], freed_by=7)) is None


def test_names_that_ipython_made_are_not_the_users():
    assert own_path(TensorRef(0, 0, ("_", "_3", "Out[3]", "loss"))) == "loss"
    assert own_path(TensorRef(0, 0, ("_",))) is None
    call = replace(second_backward().calls[0], roots=(TensorRef(0, 0, ("step:loss",)),))
    assert root_name(call) == "loss"


def test_the_shortest_way_to_a_node():
    shot = graph(N("a", "b c", (HELD,)), N("b", "c"), N("c", "w"), leaf("w"))
    assert path_to(shot, [TensorRef(0)], 2) == ((0, 0), (2, 0))
    assert path_to(shot, [TensorRef(1)], 0) == ()


def test_the_loop_of_an_iteration_is_named_where_there_are_several():
    cell = "for epoch in range(2):\n    for i, x in xs:\n        h = f(h, x)\n    g(h)\nfor x in xs:\n    g(x)\n"
    function = "def g(h):\n    while h > 1:\n        h = h / 2\n"
    record = Record(Snapshot(), (), (), {0: CellRun(0, 1, function), 1: CellRun(1, 2, cell)})

    def said(line, inner=None):
        return iteration_text(record, Place(*(inner or (2, line)), "", 2, line, "", 3, run=1))

    assert said(3) == "iteration 3 of `for i, x`"
    assert said(4) == "iteration 3 of `for epoch`"
    assert said(6) == "iteration 3"
    assert said(6, inner=(1, 3)) == "iteration 3 of `for x`"


def split():
    """`parts, rest = f(x)`; a call freed the node under both; another fails there from a loss of `rest` and `own`."""
    shot = graph(
        N("Add", "Mul Norm", seq=12),
        N("Mul", "Split:1", (HELD,), seq=11),
        N("Norm", "w", (HELD,), seq=9),
        N("Split", "Exp", seq=8),
        N("Exp", "x", (FREED,), seq=7),
        leaf("w"),
        leaf("x"),
    )
    owners = (Owner("parts", 3), Owner("own", 2), Owner("loss", 0), Owner("rest", 3, 1))
    shot = replace(shot, owners=owners, slot_freed_by=array("i", [-1, -1, 0]))
    return placed(shot, [place(2, 2), place(2, 1), place(1, 3), place(1, 2), place(1, 1), place(1, 1), place(1, 1)])


def failed(shot, executed, carriers):
    """The call of line 2 of cell 2, failed on what an earlier one had executed (indices)."""
    one = BackwardCall(0, place(1, 9), "backward", False, False, (), (), result="ok", newest_seq=10)
    one = replace(one, executed=array("q", [shot.uid[i] for i in executed]))
    two = replace(
        one, n=1, result="raised", roots=(TensorRef(0),), failed_uid=shot.uid[4], freed_by=0, carriers=carriers
    )
    return Setting(Reuse(Record(shot, (one, two), (), {}), two, one, shot))


def test_the_carrier_is_the_output_that_leads_to_the_failing_node():
    # Border: Split and Norm. `parts` is another output of Split, and Norm does not lead to Exp.
    setting = failed(split(), (2, 3, 4), ("own", "parts", "rest"))
    assert setting.reuse.boundary == (2, 3)
    assert Carrier(setting).path == Carrier(setting).name == "rest"
    assert Carrier(setting).built_at == place(1, 2)


def test_a_carrier_that_the_earlier_call_did_not_visit_was_built_where_it_was_built():
    setting = failed(split(), (4,), ("rest",))  # what the border's node made goes by no name
    assert setting.reuse.boundary == (4,)
    assert Carrier(setting).path == "rest" and Carrier(setting).built_at == place(1, 2)


def test_names_that_do_not_lead_to_the_failing_node_carry_nothing():
    setting = failed(split(), (2, 4), ("own",))
    assert Carrier(setting).path == "rest"
    setting = failed(replace(split(), owners=(Owner("own", 2), Owner("loss", 0))), (2, 4), ("own",))
    assert Carrier(setting).path is None and Carrier(setting).name == "Exp"
    assert Carrier(setting).built_at == place(1, 1)


def test_of_names_that_hold_nothing_any_more_the_one_of_the_output_that_is_used_is_said():
    setting = failed(replace(split(), owners=(Owner("loss", 0),)), (3, 4), ("parts", "rest"))
    earlier = replace(setting.reuse.earlier, graph=split())
    setting = Setting(replace(setting.reuse, earlier=earlier))
    assert Carrier(setting).path == "rest"


def test_what_was_made_after_the_freeing_call_carried_nothing_over():
    setting = failed(replace(split(), owners=(Owner("own", 2), Owner("scaled", 1))), (2, 4), ("own",))
    assert Carrier(setting).path is None
