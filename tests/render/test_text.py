from __future__ import annotations

from dataclasses import replace

from build import FREED, N, call, chain, leaf, reused_product, snapshot

from graphwidget.model import Drawing, Finding, Fix, ModuleCall, Place, SlotState
from graphwidget.render import text


def lines(graph, *calls, **more) -> list[str]:
    return text.picture(Drawing(graph, calls, **more)).splitlines()


def line_of(name: str, found: list[str]) -> str:
    return next(line for line in found if name in line)


def test_the_header_counts_nodes_leaves_roots_and_bytes() -> None:
    assert lines(reused_product())[0] == (
        "Autograd graph: 5 nodes (2 gone), 2 leaves, 1 root; 12 B held; 3 freed of 4 saved tensors"
    )


def test_an_empty_graph_says_what_to_do() -> None:
    assert "requires_grad=True" in text.picture(Drawing(snapshot([])))


def test_a_line_names_op_variable_place_and_saved_tensors() -> None:
    assert line_of("Mul", lines(reused_product())) == "● MulBackward0  In[2]:3  self float32[3] 12 B: held"
    assert lines(reused_product())[1] == "◆ SumBackward0  loss  In[2]:4, iteration 1"


def test_a_freed_slot_names_the_call_that_freed_it() -> None:
    line = line_of("MvBackward0  y", lines(reused_product(), call(0)))
    assert line.endswith("self float32[3,4] 48 B, vec float32[4] 16 B: freed by call 1 (In[2]:5, iteration 0)")


def test_a_freed_slot_whose_call_nobody_saw_says_so() -> None:
    graph = snapshot([N("Exp", slots=(("result", (2,), FREED),))])
    assert "freed, by an unknown call" in lines(graph)[1]


def test_other_states_have_their_words() -> None:
    states = (SlotState.STALE, SlotState.PACKED, SlotState.UNKNOWN, SlotState.UNSAVED)
    graph = snapshot([N("A", slots=tuple((state.word, (1,), state) for state in states))])
    line = lines(graph)[1]
    assert "stale (modified in place since)" in line and "packed (behind a saved-tensor hook)" in line
    assert "unknown float32[1] 4 B: unknown" in line and "unsaved" not in line


def test_a_place_in_a_function_of_another_cell_names_both() -> None:
    graph = snapshot([N("A", place=Place(1, 2, "", 5, 6))])
    assert "In[1]:2, called from In[5]:6" in lines(graph)[1]


def test_leaves_branch_off_and_the_longest_way_goes_straight_down() -> None:
    graph = snapshot([N("A", (1, 2)), leaf("w", shape=(4,)), N("B", (3,)), leaf("x", shape=(4,))], roots={"loss": 0})
    assert [line.split("  ")[0] for line in lines(graph)[1:]] == [
        "◆ A",
        "├─○ AccumulateGrad",
        "● B",
        "○ AccumulateGrad",
    ]


def test_a_branch_of_a_branch_is_indented() -> None:
    graph = snapshot(
        [N("A", (1, 3)), N("B", (2,)), leaf("w", shape=(4,)), N("C", (4,)), N("D", (5,)), leaf("x", shape=(4,))]
    )
    assert [line.split("  ")[0] for line in lines(graph)[1:4]] == ["● A", "├─● B", "│ ○ AccumulateGrad"]


def test_ghosts_are_drawn_as_gone_and_a_node_only_once() -> None:
    found = lines(reused_product())
    assert sum("MvBackward0" in line for line in found) == 2
    assert "↑ MvBackward0 y (drawn above)" in found[-1]
    assert sum(line.endswith("(gone)") for line in found) == 2


def test_shared_nodes_name_their_roots() -> None:
    graph = snapshot(
        [N("A", (2,)), N("B", (2,)), N("Shared", (3,)), leaf("w", shape=(4,))], roots={"loss1": 0, "loss2": 1}
    )
    found = lines(graph)
    assert line_of("Shared", found).endswith("shared by loss1, loss2")
    assert "shared" not in line_of("◆ A", found)


def test_the_failing_node_is_marked() -> None:
    raised = replace(call(1), result="raised", failed_uid=4)
    assert "✕ call 2 (In[2]:5, iteration 1) raised here" in line_of("MvBackward0", lines(reused_product(), raised))


def test_findings_follow_with_path_and_fixes() -> None:
    finding = Finding(
        "second_backward", "error", "`y` is built once.", "② needs what ① freed.", path=("loss", "y", "MvBackward0"),
        fixes=(Fix("recompute_in_loop", "Move it into the loop.", True, price="None.", edit=("+ y = t @ a",)),),
    )  # fmt: skip
    found = lines(reused_product(), findings=(finding,))
    start = found.index("✕ ② needs what ① freed.")
    assert found[start + 1 :] == [
        "  `y` is built once.",
        "  loss → y → MvBackward0",
        "  1. Move it into the loop. None.",
        "       + y = t @ a",
    ]


def test_a_long_graph_is_folded_with_honest_counts() -> None:
    graph = chain(5000)
    found = lines(graph)
    assert len(found) <= 60
    drawn = sum("⋯" not in line and "drawn above" not in line for line in found[1:])
    folded = sum(int(line.split("⋯ ")[1].split(" node")[0]) for line in found if "⋯" in line)
    assert drawn + folded == len(graph)
    assert found[1].startswith("◆ Op0Backward0  loss")


def test_folding_keeps_the_failing_node_and_named_nodes() -> None:
    graph = chain(5000)
    graph = replace(graph, owners=(*graph.owners, replace(graph.owners[0], path="h", node=3333)))
    raised = replace(call(0), result="raised", failed_uid=graph.uid[2222])
    found = lines(graph, raised)
    assert any("raised here" in line for line in found)
    assert any("  h  " in line for line in found)


def test_folding_shows_the_border_of_each_block() -> None:
    blocks = [ModuleCall(f"model.h[{i // 100}]", "Block", 0) for i in range(1200)]
    nodes = [N("Op", (i + 1,) if i < 1199 else (), module=blocks[i]) for i in range(1200)]
    found = "\n".join(lines(snapshot(nodes, roots={"loss": 0})))
    assert all(f"model.h[{k}]" in found for k in range(12))


def test_many_findings_do_not_bury_the_graph() -> None:
    findings = tuple(Finding("leak", "warning", f"text {i}", f"headline {i}") for i in range(100))
    found = lines(chain(500), findings=findings)
    assert len(found) <= 62 and "more lines of findings" in found[-1]
    assert sum("Backward0" in line for line in found) > 10


def test_a_cycle_of_folds_never_hides_one_line_behind_a_count_of_one() -> None:
    assert not [line for line in lines(chain(5000)) if "⋯ 1 node" in line]


def test_a_deep_graph_needs_no_recursion() -> None:
    found = lines(chain(10_000))
    assert found[0].startswith("Autograd graph: 9000 nodes, 1000 leaves") and len(found) <= 62
