"""The forecast on graphs written by hand; `tests/fuzz` compares it with the real engine."""

import pytest
from build import FREED, HELD, PACKED, STALE, N, graph, leaf, names, ref

from graphwidget.engine.forecast import after, afterwards, forecast
from graphwidget.model import Kind, NodeFacts, SlotState, Storage, TensorRef

CUSTOM, COPY_SLICES, ERROR = Kind.CUSTOM, Kind.COPY_SLICES, Kind.ERROR


def shared_part():
    """Two losses over one `mv`: `a` was made before `b`."""
    return graph(
        N("b", "mulB", seq=5), N("a", "mulA", seq=4), N("mulB", "mv", (HELD,), seq=3), N("mulA", "mv", (HELD,), seq=2),
        N("mv", "w", (HELD, HELD), seq=1), leaf("w"),
    )  # fmt: skip


def test_a_call_executes_what_the_root_reaches_and_frees_what_that_saved():
    shot = shared_part()
    predicted = forecast(shot, [ref(shot, "a")])
    assert predicted.ok is True and predicted.word == "ok"
    assert names(predicted.executes) == ["a", "mulA", "mv", "w"]
    assert {n.name: len(slots) for n, slots in predicted.frees.items()} == {"mulA": 1, "mv": 2}
    assert names(predicted.reaches) == ["w"]
    assert predicted.freed_bytes == predicted.returned_bytes == 24


def test_retain_graph_frees_nothing_and_defaults_to_create_graph():
    shot = shared_part()
    root = [ref(shot, "a")]
    assert not forecast(shot, root, retain_graph=True).frees
    assert not forecast(shot, root, create_graph=True).frees
    assert forecast(shot, root, create_graph=True, retain_graph=False).frees


def test_the_second_call_over_a_shared_part_fails_there_after_freeing_its_own_part():
    shot = shared_part()
    then = after(shot, forecast(shot, [ref(shot, "a")]), n=0)
    predicted = forecast(then, [ref(shot, "b")])
    assert predicted.ok is False and predicted.reason == "freed"
    assert (
        predicted.fails_at.name == "mv" and predicted.fails_slot.name == "self" and predicted.fails_slot.freed_by == 0
    )
    assert names(predicted.executes) == ["b", "mulB"] and names(predicted.frees) == ["mulB"]
    assert predicted.reaches == ()


def test_afterwards_says_what_each_root_would_do_then():
    base = shared_part()
    shot = graph_with_roots(base, "a", "b")
    words = {root.path: then.word for root, then in afterwards(shot, forecast(shot, [shot.roots[0]]))}
    assert words == {"a": "freed", "b": "freed"}
    words = {root.path: t.word for root, t in afterwards(shot, forecast(shot, [shot.roots[0]], retain_graph=True))}
    assert words == {"a": "ok", "b": "ok"}


def graph_with_roots(shot, *roots):
    return type(shot)(**{**vars(shot), "roots": tuple(ref(shot, r) for r in roots)})


def test_the_latest_forward_operation_runs_first_and_a_leaf_as_soon_as_it_is_ready():
    shot = graph(N("add", "early late", seq=9), N("early", "x", seq=1), N("late", "w", seq=5), leaf("x"), leaf("w"))
    assert names(forecast(shot, [ref(shot, "add")]).executes) == ["add", "late", "w", "early", "x"]


def test_a_node_waits_for_every_edge_duplicates_too():
    shot = graph(N("mul", "exp exp sin"), N("sin", "exp", seq=1), N("exp", "w", seq=7), leaf("w"))
    assert names(forecast(shot, [ref(shot, "mul")]).executes) == ["mul", "sin", "exp", "w"]


def test_the_same_root_twice_runs_once():
    shot = shared_part()
    assert names(forecast(shot, [ref(shot, "a")] * 2, grad_given=True).executes) == ["a", "mulA", "mv", "w"]


def test_several_roots_run_in_order_of_creation_not_of_the_list():
    shot = shared_part()
    predicted = forecast(shot, [ref(shot, "a"), ref(shot, "b")])
    assert names(predicted.executes) == ["b", "a", "mulB", "mulA", "mv", "w"]


# --- before the engine starts


def test_a_root_that_is_no_scalar_wins_over_another_that_requires_no_grad():
    shot = shared_part()
    constant, vector = TensorRef(-1, paths=("c",), requires_grad=False), ref(shot, "a", numel=3)
    assert forecast(shot, [constant, vector]).reason == "not_scalar"
    predicted = forecast(shot, [constant, vector], grad_given=True)
    assert predicted.reason == "no_grad" and predicted.executes == () and predicted.fails_at is None
    assert "c does not require grad" in predicted.why


def test_a_view_made_under_no_grad_is_refused_although_it_requires_grad():
    view = TensorRef(-1, paths=("v",), problem="no_grad_view")
    assert forecast(graph(), [view]).word == "no_grad"


def test_an_input_that_requires_no_grad_is_refused():
    shot = shared_part()
    predicted = forecast(shot, [ref(shot, "a")], inputs=[TensorRef(-1, paths=("c",), requires_grad=False)])
    assert predicted.word == "no_grad" and "input c" in predicted.why


def test_a_leaf_alone_runs_nothing_and_succeeds():
    assert forecast(graph(), [TensorRef(-1, paths=("w",), is_leaf=True)]).ok is True


# --- inputs=


def branches():
    return graph(
        N("add", "left right", seq=4), N("left", "h", (HELD,), seq=3), N("right", "x", (HELD,), seq=2),
        N("h", "w", (HELD,), seq=1), leaf("w"), leaf("x"),
    )  # fmt: skip


def test_inputs_runs_and_frees_only_what_leads_to_them():
    shot = branches()
    predicted = forecast(shot, [ref(shot, "add")], inputs=[ref(shot, "x")])
    assert names(predicted.executes) == ["add", "right", "x"] and names(predicted.frees) == ["right"]


def test_grad_stops_in_front_of_the_node_of_an_input_and_backward_runs_it():
    shot = branches()
    root, wanted = [ref(shot, "add")], [ref(shot, "h")]
    captured = forecast(shot, root, inputs=wanted, api="autograd.grad")
    assert names(captured.executes) == ["add", "left"] and names(captured.frees) == ["left"]
    executed = forecast(shot, root, inputs=wanted)
    assert names(executed.executes) == ["add", "left", "h"] and names(executed.frees) == ["left", "h"]


def test_grad_changes_no_leaf():
    shot = branches()
    predicted = forecast(shot, [ref(shot, "add")], inputs=[ref(shot, "w")], api="autograd.grad")
    assert names(predicted.executes) == ["add", "left", "h"] and predicted.reaches == ()


def test_a_captured_node_runs_if_another_input_lies_behind_it():
    shot = branches()
    predicted = forecast(shot, [ref(shot, "add")], inputs=[ref(shot, "h"), ref(shot, "w")], api="autograd.grad")
    assert names(predicted.executes) == ["add", "left", "h"]


def test_an_unused_input_is_complained_about_after_everything_ran():
    shot = branches()
    elsewhere = TensorRef(-1, paths=("z",), is_leaf=True)
    inputs = [ref(shot, "w"), elsewhere]
    predicted = forecast(shot, [ref(shot, "add")], inputs=inputs, api="autograd.grad", allow_unused=False)
    assert predicted.word == "unused" and names(predicted.frees) == ["left", "h"] and "z" in predicted.why
    assert forecast(shot, [ref(shot, "add")], inputs=inputs, api="autograd.grad").ok is True


def test_the_other_output_of_a_captured_node_is_unused():
    shot = graph(N("mul", "unbind:1"), N("unbind", "w"), leaf("w"))
    wanted = [ref(shot, "unbind", 0)]
    predicted = forecast(shot, [ref(shot, "mul")], inputs=wanted, api="autograd.grad", allow_unused=False)
    assert predicted.word == "unused"
    wanted = [ref(shot, "unbind", 1)]
    assert forecast(shot, [ref(shot, "mul")], inputs=wanted, api="autograd.grad", allow_unused=False).ok is True


# --- what stops a node


def test_a_stale_slot_fails_as_inplace_and_a_freed_one_before_it_as_freed():
    shot = graph(N("mul", "w", (HELD, STALE)), leaf("w"))
    predicted = forecast(shot, [ref(shot, "mul")])
    assert predicted.reason == "inplace" and predicted.fails_slot.name == "other" and predicted.executes == ()
    shot = graph(N("mul", "w", (FREED, STALE)), leaf("w"))
    assert forecast(shot, [ref(shot, "mul")]).reason == "freed"


def test_a_detached_slot_is_found_before_its_version():
    shot = graph(N("mul", "w", (STALE, HELD), facts=NodeFacts(detached_slot="self")), leaf("w"))
    assert forecast(shot, [ref(shot, "mul")]).reason == "detached"


def test_a_slot_that_cannot_be_read_is_unknown():
    shot = graph(N("add", "mul"), N("mul", "w", (SlotState.UNKNOWN,)), leaf("w"))
    predicted = forecast(shot, [ref(shot, "add")])
    assert (
        predicted.ok is None
        and predicted.unknown_at.name == "mul"
        and names(predicted.executes) == ["add"]
        and predicted.why
    )


def test_an_error_node_always_raises_and_a_packed_slot_does_not():
    shot = graph(N("mul", "error", (PACKED,), facts=NodeFacts(unpack_plain=True)), N("error", seq=-1, kind=ERROR))
    predicted = forecast(shot, [ref(shot, "mul")])
    assert predicted.reason == "not_differentiable" and names(predicted.frees) == ["mul"] and predicted.assumes == ()


def test_an_unpack_hook_that_was_not_read_is_an_assumption():
    shot = graph(N("mul", "w", (PACKED,)), leaf("w"))
    predicted = forecast(shot, [ref(shot, "mul")])
    assert predicted.ok is True and "unpack mul" in predicted.assumes[0]


def test_a_leaf_that_became_an_inner_tensor_raises_and_one_that_was_frozen_is_skipped():
    shot = graph(N("mul", "w"), leaf("w", is_leaf=False))
    assert forecast(shot, [ref(shot, "mul")]).reason == "leaf_interior"
    shot = graph(N("mul", "w"), leaf("w", requires_grad=False))
    predicted = forecast(shot, [ref(shot, "mul")])
    assert predicted.ok is True and predicted.reaches == ()


def test_a_leaf_that_became_an_inner_tensor_raises_even_without_a_gradient():
    returns_none = NodeFacts(plain=True, reads_saved=False, returns=(False,))
    shot = graph(N("fn", "w", kind=CUSTOM, facts=returns_none), leaf("w", is_leaf=False))
    assert forecast(shot, [ref(shot, "fn")]).reason == "leaf_interior"


def test_a_leaf_of_which_nobody_can_say_whether_it_still_is_one_is_unknown():
    shot = graph(N("mul", "w"), leaf("w"))
    shot.facts[1] = NodeFacts(effect="may be no leaf any more")
    assert forecast(shot, [ref(shot, "mul")]).ok is None


def test_adding_to_a_grad_that_a_later_node_saved_makes_that_node_fail():
    grad = (Storage(0, 4),)
    shot = graph(
        N("add", "w old", seq=9), leaf("w", has_grad=True, grad_storage=0), N("old", "x", (HELD,), seq=1, storage=(0,)),
        leaf("x"), storages=grad,
    )  # fmt: skip
    root = [ref(shot, "add")]
    assert forecast(shot, root).reason == "inplace"
    assert forecast(shot, root, create_graph=True).ok is True  # adds out of place
    assert forecast(after(shot, forecast(shot, [ref(shot, "w")])), [ref(shot, "old")]).reason == "inplace"


def test_what_saved_a_grad_that_a_gradient_may_have_been_added_to_is_unknown_afterwards():
    perhaps = NodeFacts(plain=True, reads_saved=False, returns=(None,))
    shot = graph(
        N("fn", "w", kind=CUSTOM, facts=perhaps, seq=9), leaf("w", has_grad=True, grad_storage=0),
        N("old", "x", (HELD,), seq=1, storage=(0,)), leaf("x"), storages=(Storage(0, 4),),
    )  # fmt: skip
    predicted = forecast(shot, [ref(shot, "fn")])
    assert (predicted.ok, predicted.writes, predicted.may_write) == (True, (), (0,))
    assert forecast(shot, [ref(shot, "old")]).ok is True
    assert forecast(after(shot, predicted), [ref(shot, "old")]).ok is None


def test_nothing_is_added_to_a_grad_that_refuses_writes():
    shot = graph(N("mul", "w"), leaf("w", has_grad=True, grad_refuses="is a ZeroTensor"))
    root = [ref(shot, "mul")]
    predicted = forecast(shot, root)
    assert predicted.reason == "raises" and names([predicted.fails_at]) == ["w"] and "ZeroTensor" in predicted.why
    assert forecast(shot, root, create_graph=True).ok is True  # adds out of place


# --- in-place writes into views


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (NodeFacts(), "ok"),
        (NodeFacts(released=True), "freed"),
        (NodeFacts(released=None), "unknown"),
        (NodeFacts(inner_stale=True), "inplace"),
        (NodeFacts(overlap=True), "overlap"),
        (None, "unknown"),
    ],
)
def test_a_write_into_a_view_does_what_was_seen_of_it(facts, word):
    shot = graph(N("copy", "w", kind=COPY_SLICES, facts=facts), leaf("w"))
    assert forecast(shot, [ref(shot, "copy")]).word == word


def test_a_write_into_a_view_fails_the_second_time_even_if_it_saved_nothing():
    shot = graph(N("copy", "w", kind=COPY_SLICES, facts=NodeFacts()), leaf("w"))
    root = [ref(shot, "copy")]
    assert forecast(after(shot, forecast(shot, root)), root).reason == "freed"
    assert forecast(after(shot, forecast(shot, root, retain_graph=True)), root).ok is True


def test_operands_that_were_not_seen_are_an_assumption():
    shot = graph(N("copy", "w", kind=COPY_SLICES, facts=NodeFacts(inner_stale=None)), leaf("w"))
    predicted = forecast(shot, [ref(shot, "copy")])
    assert predicted.ok is True and predicted.assumes


# --- Python code in the graph


def custom(**facts):
    facts = {"plain": True, "reads_saved": True, "may_return_none": False, **facts}
    slots = facts.pop("slots", (HELD,))
    return graph(
        N("fn", "copy", slots, kind=CUSTOM, facts=NodeFacts(**facts)),
        N("copy", "w", kind=COPY_SLICES, facts=NodeFacts(released=True)), leaf("w"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "word", "where"),
    [
        ({}, "freed", "copy"),
        ({"slots": (FREED,)}, "freed", "fn"),
        ({"slots": (FREED,), "reads_saved": False}, "freed", "copy"),
        ({"slots": (FREED,), "reads_saved": None}, "unknown", "fn"),
        ({"reads_saved": None}, "freed", "copy"),
        ({"effect": "calls backward itself"}, "unknown", "fn"),
        ({"returns": (False,)}, "ok", None),
        ({"returns": (None,)}, "unknown", "copy"),
        ({"may_return_none": None}, "unknown", "copy"),
    ],
)
def test_a_custom_function_does_what_its_code_says(facts, word, where):
    predicted = forecast(custom(**facts), [TensorRef(0)])
    at = predicted.fails_at or predicted.unknown_at
    assert (predicted.word, at.name if at else None) == (word, where)


def test_a_custom_function_that_was_not_read_is_an_assumption():
    shot = graph(N("fn", "w", (HELD,), kind=CUSTOM), leaf("w"))
    predicted = forecast(shot, [ref(shot, "fn")])
    assert predicted.ok is True and "fn runs Python code" in predicted.assumes[0]


def test_a_custom_function_that_saved_nothing_but_reads_fails_the_second_time():
    shot = graph(N("fn", "w", kind=CUSTOM, facts=NodeFacts(plain=True, reads_saved=True)), leaf("w"))
    root = [ref(shot, "fn")]
    assert forecast(shot, root).ok is True
    assert forecast(after(shot, forecast(shot, root)), root).reason == "freed"


def test_hooks_that_were_not_read_are_an_assumption_and_those_with_effects_unknown():
    shot = graph(N("mul", "w", facts=NodeFacts(hooks=2, hooks_plain=1)), leaf("w"))
    assert "hooks on mul" in forecast(shot, [ref(shot, "mul")]).assumes[0]
    shot = graph(N("mul", "w", facts=NodeFacts(hooks=1, hooks_plain=1)), leaf("w"))
    assert forecast(shot, [ref(shot, "mul")]).assumes == ()
    shot = graph(N("mul", "w", facts=NodeFacts(hooks=1, hook_effect="calls backward itself")), leaf("w"))
    predicted = forecast(shot, [ref(shot, "mul")])
    assert predicted.ok is None and predicted.why == "a hook on mul calls backward itself"


def test_code_that_raises_whatever_happens_is_certain_except_in_a_leafs_hook():
    raising = NodeFacts(hooks=1, hook_effect="raises")
    shot = graph(N("mul", "w", facts=raising), leaf("w"))
    assert forecast(shot, [ref(shot, "mul")]).reason == "raises"
    shot = graph(N("mul", "w"), N("w", kind=Kind.ACCUMULATE, seq=-1, facts=raising))
    assert forecast(shot, [ref(shot, "mul")]).ok is None
    shot = graph(N("fn", "w", kind=CUSTOM, facts=NodeFacts(effect="raises", reads_saved=False)), leaf("w"))
    assert forecast(shot, [ref(shot, "fn")]).reason == "raises"


# --- checkpoints


def checkpointed(state, **more):
    facts = NodeFacts(non_reentrant_checkpoint=True, checkpoint=1, unpack_plain=True, argument_state=state, **more)
    return graph(N("mul", "w", (PACKED,), facts=facts), leaf("w"))


@pytest.mark.parametrize(
    ("state", "word"),
    [("ok", "ok"), ("inplace", "inplace"), ("detached", "detached"), ("frozen", "unknown"), ("unknown", "unknown")],
)
def test_a_checkpoint_looks_at_its_arguments(state, word):
    assert forecast(checkpointed(state), [TensorRef(0)]).word == word


def test_a_reentrant_checkpoint_refuses_inputs_before_anything_else():
    facts = NodeFacts(reentrant_checkpoint=True, plain=True, reads_saved=True)
    shot = graph(N("check", "w", (FREED,), kind=CUSTOM, facts=facts), leaf("w"))
    root = [ref(shot, "check")]
    assert forecast(shot, root, inputs=[ref(shot, "w")]).reason == "checkpoint"
    assert forecast(shot, root).reason == "freed"


# --- bytes


def test_a_storage_counts_once_and_comes_back_only_if_nothing_else_owns_it():
    storages = (Storage(0, 100), Storage(1, 10, owners=("x",)), Storage(2, 1))
    shot = graph(
        N("a", "w", (HELD, HELD, HELD), storage=(0, 0, 1)), N("b", "w", (HELD,), storage=(2,)),
        N("c", "a", (HELD,), storage=(2,)), leaf("w"), storages=storages,
    )  # fmt: skip
    predicted = forecast(shot, [ref(shot, "c")])
    assert (predicted.freed_bytes, predicted.returned_bytes) == (111, 100)


def test_after_leaves_the_snapshot_as_it_was():
    shot = shared_part()
    before = bytes(shot.slot_state)
    then = after(shot, forecast(shot, [ref(shot, "a")]))
    assert bytes(shot.slot_state) == before and not shot.leaves[5].has_grad
    assert then.leaves[5].has_grad


def test_a_chain_of_a_hundred_thousand_nodes_takes_no_recursion():
    n = 100_000
    nodes = [N(f"n{i}", f"n{i + 1}" if i + 1 < n else "", (HELD,)) for i in range(n)]
    shot = graph(*nodes)
    predicted = forecast(shot, [TensorRef(0)])
    assert len(predicted.executes) == n and predicted.freed_bytes == 8 * n
