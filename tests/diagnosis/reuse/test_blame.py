"""What some writes made stale is as it was without them; what others did stays."""

from array import array
from dataclasses import replace

from build import HELD, STALE, N, graph, leaf
from records import place, placed

from graphwidget.diagnosis.reuse import blame
from graphwidget.model import Kind, NodeFacts, Record, SlotState, Storage, Write

A, B = 71, 72
SHOT = placed(
    graph(
        N("Sum", "Exp Sin", (), seq=3),
        N("Exp", "w", (STALE,), seq=1, storage=(0,)),
        N("Sin", "w", (STALE,), seq=2, storage=(1,)),
        leaf("w"),
        storages=(Storage(A, 8, ("a",)), Storage(B, 8, ("b",))),
    ),
    [place(1, 3, run=0), place(1, 1, run=0), place(1, 2, run=0), place(1, 1, run=0)],
)
WRITES = (
    Write(place(2, 1, run=1), "a.add_(1)", ("a",), (A,)),
    Write(place(2, 2, run=1), "b.mul_(2)", ("b",), (B,)),
    Write(place(2, 3, run=1), "a.mul_(2)", ("a",), (A,)),
)
RECORD = Record(SHOT, (), WRITES, {})


def test_the_culprits_are_the_writes_to_what_the_node_had_saved():
    assert blame.culprit(RECORD, SHOT, 1, 0) == ("a", (WRITES[0], WRITES[2]))
    assert blame.culprit(RECORD, SHOT, 2, 0) == ("b", (WRITES[1],))


def test_only_what_all_its_writes_are_undone_for_is_as_it_was():
    assert states(lambda found: True) == [HELD, HELD]
    assert states(lambda found: found == (WRITES[1],)) == [STALE, HELD]
    assert states(lambda found: WRITES[0] in found) == [HELD, STALE]


def test_what_nobody_was_seen_to_write_stays_modified():
    unseen = replace(RECORD, writes=WRITES[1:2])
    assert states(lambda found: True, unseen) == [STALE, HELD]


def test_what_a_hidden_node_saved_may_be_anything_that_was_written_since():
    hidden = replace(SHOT, facts={1: NodeFacts(inner_stale=True)})
    some = blame.without(RECORD, hidden, 0, lambda found, _: WRITES[1] not in found)
    assert some.facts[1].inner_stale is True
    assert blame.without(RECORD, hidden, 0, lambda found, _: True).facts[1].inner_stale is False


def states(undone, record=RECORD):
    return [SlotState(one) for one in blame.without(record, SHOT, 0, lambda found, _: undone(found)).slot_state]


def into_view(*operands):
    """A write into a view (node 0) of what node 1 made, with these operands; both lines of cell 1."""
    shot = placed(
        graph(
            N("CopySlices", " ".join(("Mul", *operands)), (), seq=4),
            N("Select", "Mul", (), seq=3),
            N("Sin", "w", (), seq=2),
            N("Mul", "w", (), seq=1),
            leaf("w"),
        ),
        [place(1, 2, run=0), place(1, 2, run=0), place(1, 1, run=0), place(1, 1, run=0), place(1, 1, run=0)],
    )
    shot.kind[0] = Kind.COPY_SLICES
    return replace(shot, facts={0: NodeFacts(inner_stale=True)})


OWN = Write(place(1, 2, run=0), "y[1] *= y[2]", ("y",), (A,))
LATER = Write(place(2, 1, run=1), "z.add_(1)", ("z",), (B,))


def culprit(shot, *writes):
    return blame.culprit(Record(shot, (), writes, {}), shot, 0, 0)


def test_a_write_that_reads_what_it_writes_to_is_its_own_culprit():
    assert culprit(into_view("Select"), OWN) == ("y", (OWN,))


def test_a_write_that_does_not_is_none():
    assert culprit(into_view("Sin"), OWN, LATER) == ("z", (LATER,))
    assert culprit(into_view(), OWN) == (None, ())


def test_of_two_tensors_that_it_may_have_saved_none_is_blamed():
    assert culprit(into_view("Select"), OWN, LATER) == (None, ())


def test_a_write_whose_result_was_saved_came_before():
    # `a.exp_()` (line 1) made the node; `a += 1` is the culprit. Had the node saved what it read, both would be.
    made = Write(place(1, 1, run=0), "a.exp_()", ("a",), (A,), made=(1,))
    later = Write(place(1, 2, run=0), "a += 1", ("a",), (A,), made=(2,))
    record = Record(SHOT, (), (made, later), {})
    result = replace(SHOT, slot_name=array("i", [2, 2]))
    assert blame.culprit(record, result, 1, 0) == ("a", (later,))
    assert blame.culprit(record, SHOT, 1, 0) == ("a", (made, later))
    twice = replace(made, by="a.exp_().add_(1)", made=(2,))
    assert blame.culprit(replace(record, writes=(twice, later)), result, 1, 0) == ("a", (twice, later))
    through = replace(made, place=place(1, 3, run=0), by="a.detach().zero_()")  # the node was there before
    assert blame.culprit(replace(record, writes=(later, through)), result, 1, 0) == ("a", (later, through))


def test_a_write_that_surely_came_before_the_node_is_not_blamed_for_another_that_nobody_saw():
    earlier = Write(place(1, 0, run=0), "a.add_(1)", ("a",), (A,), number=0)
    record = replace(RECORD, writes=(earlier,))
    assert blame.culprit(record, SHOT, 1, 0) == ("a", ())
    unknown = replace(earlier, number=-1)  # of a step of an optimizer: what came first is not known
    assert blame.culprit(replace(RECORD, writes=(unknown,)), SHOT, 1, 0) == ("a", (unknown,))
