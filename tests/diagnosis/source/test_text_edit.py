"""Edits of a cell's text: made for a statement, applied, and shown to a person."""

import ast
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import TextEdit

LOOP = """for x in xs:
    loss = f(
        x,
    )
    loss.backward()
done = True
"""


def at(text, line, nth=0):
    """The nth simple statement that begins at a line."""
    return syntax.beginning_at(text, line)[nth]


def edited(make, text, where, new):
    return text_edit.apply(text, make(1, text, where, new))


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        ("a()\nb()\n", 2, "a()\nnew()\nb()\n"),
        (LOOP, 3, LOOP.replace("    loss = f(", "    new()\n    loss = f(")),
        ("if x:\n    a()\nelif y:\n    b()\n", 3, "new()\nif x:\n    a()\nelif y:\n    b()\n"),
        ("@f\ndef g():\n    pass\n", 2, "new()\n@f\ndef g():\n    pass\n"),
        ("if x: a()\n", 1, "if x: new(); a()\n"),
        ("%time\nö = 1; a()", 2, "%time\nnew()\nö = 1; a()"),
        ("", 1, ""),
        ("broken (", 1, "broken ("),
    ],
)
def test_lines_are_written_before_the_statement_at_a_line(text, line, after):
    assert edited(text_edit.insert_before, text, line, ["new()"]) == after


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        ("a()  # why\nb()\n", 1, "a()  # why\nnew()\nb()\n"),
        (LOOP, 2, LOOP.replace("    )\n", "    )\n    new()\n")),
        ("a(); b()", 1, "a(); b()\nnew()"),
        ("if x: a()\nb()", 1, "if x: a(); new()\nb()"),
        ("a();", 1, "a();\nnew()"),
        (LOOP, 1, LOOP),
    ],
)
def test_lines_are_written_after_the_whole_statement_at_a_line(text, line, after):
    assert edited(text_edit.insert_after, text, line, ["new()"]) == after


def test_one_of_several_statements_on_a_line_gets_its_neighbour_on_that_line():
    text = "größe(); b(); c()\n"
    assert edited(text_edit.insert_before, text, at(text, 1, 1), ["new()"]) == "größe(); new(); b(); c()\n"
    assert edited(text_edit.insert_after, text, at(text, 1, 0), ["new()"]) == "größe(); new(); b(); c()\n"
    assert edited(text_edit.insert_after, text, at(text, 1, 2), ["new()"]) == "größe(); b(); c()\nnew()\n"
    assert text_edit.insert_after(1, text, at(text, 1, 0), ["for x in xs:\n    f(x)"]) == ()


def test_a_line_and_a_node_are_replaced():
    text = "def f():\n    grün = g(ä, b)  # why\n"
    assert edited(text_edit.replace_line, text, 2, "  return 1 ") == "def f():\n    return 1\n"
    assert text_edit.replace_line(1, text, 2, "grün = g(ä, b)  # why") == ()
    call = at(text, 2).value
    assert edited(text_edit.replace_node, text, call.args[1], "b.clone()") == text.replace("b)", "b.clone())")
    whole = edited(text_edit.replace_node, text, at(text, 2), "with h:\n    grün = 1")
    assert whole == "def f():\n    with h:\n        grün = 1  # why\n"


@pytest.mark.parametrize(
    ("text", "line", "nth", "after"),
    [
        ("a()\nb()\n", 1, 0, "b()\n"),
        ("a()\nb()", 2, 0, "a()"),
        (LOOP, 2, 0, "for x in xs:\n    loss.backward()\ndone = True\n"),
        ("for x in xs:\n    a()  # why\n", 2, 0, "for x in xs:\n    pass  # why\n"),
        ("a(); ö(); c()\n", 1, 1, "a(); c()\n"),
        ("a(); ö()\n", 1, 1, "a()\n"),
        ("a(); ö()\n", 1, 0, "ö()\n"),
        ("if x: a()\nb()\n", 1, 0, "if x: pass\nb()\n"),
        ("loss.backward()", 1, 0, ""),
        ("# why\nloss.backward()\n", 2, 0, "# why\n"),
    ],
)
def test_a_statement_is_taken_out(text, line, nth, after):
    assert text_edit.apply(text, text_edit.remove(1, text, at(text, line, nth))) == after


def test_edits_are_applied_from_the_last_to_the_first_and_may_not_overlap():
    text = "ab\ncd\n"
    one, two = TextEdit((1, 0), (1, 1), "XY"), TextEdit((1, 1), (2, 0), "-")
    assert text_edit.apply(text, [two, one]) == "XY-cd\n"
    twice = [TextEdit((1, 1), (1, 1), "1"), TextEdit((1, 1), (1, 1), "2")]
    assert text_edit.apply(text, twice) == "a12b\ncd\n"
    with pytest.raises(ValueError, match="overlap"):
        text_edit.apply(text, [TextEdit((1, 0), (2, 0), ""), two])
    for wrong in ((0, 0), (4, 0), (1, 4), (3, 1), (1, -1)):
        with pytest.raises(ValueError, match="no "):
            text_edit.apply(text, [TextEdit(wrong, wrong, "x")])


def test_edits_of_several_cells_are_applied_each_to_its_cell():
    cells = {3: "a()\n", 1: "b()\n"}
    edits = (*text_edit.replace_line(1, cells[1], 1, "c()"), *text_edit.insert_after(3, cells[3], 1, ["d()"]))
    assert text_edit.apply_to(cells, edits) == {3: "a()\nd()\n", 1: "c()\n"}
    assert text_edit.shown_in(cells, edits) == ("  a()", "+ d()", "- b()", "+ c()")
    for cell in (None, 7):
        with pytest.raises(ValueError, match="cell"):
            text_edit.apply_to(cells, [TextEdit((1, 0), (1, 0), "x", cell)])


def test_what_is_shown_has_context_only_beside_what_is_inserted():
    assert text_edit.shown(LOOP, text_edit.insert_before(1, LOOP, 5, ["new()"])) == ("+ new()", "  loss.backward()")
    assert text_edit.shown(LOOP, text_edit.insert_after(1, LOOP, 5, ["new()"])) == ("  loss.backward()", "+ new()")
    wide = ("  loss = f(", "      x,", "  )", "+ new()")
    assert text_edit.shown(LOOP, text_edit.insert_after(1, LOOP, 2, ["new()"])) == wide
    assert text_edit.shown(LOOP, text_edit.replace_line(1, LOOP, 6, "done = 1")) == ("- done = True", "+ done = 1")
    moved = (*text_edit.remove(1, LOOP, at(LOOP, 6)), *text_edit.insert_before(1, LOOP, 1, ["done = True"]))
    assert text_edit.shown(LOOP, moved) == ("+ done = True", "  for x in xs:", "- done = True")
    assert text_edit.shown(LOOP, ()) == ()


WORDS = st.lists(st.sampled_from(["a", "ö = b\n", "\n", "    c()\n", "; ", "\x0c", "if x:\n", "𝔸"]), max_size=12)


@given(WORDS, st.integers(1, 12), st.booleans())
def test_an_insertion_leaves_every_line_of_the_text_and_a_program_a_program(words, line, before):
    text = "".join(words)
    make = text_edit.insert_before if before else text_edit.insert_after
    edits = make(1, text, line, ["new = 1"])
    after = text_edit.apply(text, edits)
    if not edits:
        assert after == text
        return
    assert "new = 1" in after and "+ new = 1" in text_edit.shown(text, edits) or ";" in after or ":" in after
    assert syntax.parse(after) is not None
    (edit,) = edits
    assert after.replace(edit.new, "", 1) == text or edit.new in text


@given(WORDS)
def test_a_node_stands_where_its_span_says(words):
    text = "".join(words)
    tree = syntax.parse(text)
    lines = syntax.lines_of(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name):
            (line, start), (_, end) = text_edit.span(text, node)
            assert unicodedata.normalize("NFKC", lines[line - 1][start:end]) == node.id


@given(WORDS, st.integers(1, 12), st.integers(1, 12))
def test_the_lines_that_edits_write_are_numbered_as_in_the_text_they_leave(words, one, two):
    text = "".join(words)
    edits = (*text_edit.insert_before(1, text, one, ["p = 1"]), *text_edit.insert_after(1, text, two, ["q = 2", "r()"]))
    lines = syntax.lines_of(text_edit.apply(text, edits))
    found = {lines[line - 1].strip() for line in text_edit.written(text, edits)}
    marks = [mark for mark in ("p = 1", "q = 2", "r()") if any(mark in edit.new for edit in edits)]
    assert all(any(mark in line for line in found) for mark in marks)
    assert all(any(mark in line for mark in marks) for line in found)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("g, = torch.autograd.grad(y[i], x)", "g, = torch.autograd.grad(y[i], x, retain_graph=True)"),
        ("loss.backward(retain_graph=False)", "loss.backward(retain_graph=True)"),
        ("[l.backward() for l in losses]", "[l.backward(retain_graph=True) for l in losses]"),
        ("größe.backward(\n    gradient=v,\n)", "größe.backward(\n    gradient=v, retain_graph=True,\n)"),
        ("loss.backward(retain_graph=True)", "loss.backward(retain_graph=True)"),
        ("step()", "step()"),
    ],
)
def test_a_keyword_is_given_to_the_call_that_runs_backward(text, changed):
    edits = text_edit.with_keyword(1, text, at(text, 1), "retain_graph=True")
    assert text_edit.apply(text, edits) == changed


def test_text_is_written_around_a_node():
    text = "ö = (a * b).numpy(False)\n"
    call = at(text, 1).value
    assert edited(text_edit.insert_before_attribute, text, call.func, ".detach()") == text.replace(
        ").n", ").detach().n"
    )
    assert edited(text_edit.insert_behind, text, call.args[0], " or x") == text.replace("False", "False or x")
    twice = text_edit.replace_in(1, text, call, "a", "ä")
    assert text_edit.apply(text, twice) == "ö = (ä * b).numpy(Fälse)\n"
    assert text_edit.new_text(text, twice) == "ö = (ä * b).numpy(Fälse)"
    assert edited(lambda *_: text_edit.replace_lines(1, LOOP, 2, 4, ["f()", "g()"]), LOOP, None, None) == LOOP.replace(
        "loss = f(\n        x,\n    )", "f()\n    g()"
    )


def test_several_statements_are_taken_out_together():
    text = "a(); ö(); c()\nfor x in xs:\n    d()\n    e()\nf()\n"
    out = [at(text, 1, 0), at(text, 1, 1), at(text, 3), at(text, 4)]
    assert text_edit.apply(text, text_edit.remove(1, text, *out)) == "c()\nfor x in xs:\n    pass\nf()\n"
    out = [at(text, 1, 0), at(text, 1, 1), at(text, 1, 2), at(text, 4)]
    assert text_edit.apply(text, text_edit.remove(1, text, *out)) == "for x in xs:\n    d()\nf()\n"


def test_lines_before_a_blank_line_are_shown_beside_the_line_above_and_no_blank_line_changes():
    before = "def f():\n    x = 1\n    (x +\n     2).b()\n\n    if x:\n        y()\n"
    after = before.replace("2).b()\n", "2).b()\n    h = 0\n")
    edits = text_edit.between(before, after, 1)
    assert text_edit.shown(before, edits) == ("  (x +", "   2).b()", "+ h = 0")
    assert text_edit.apply(before, edits) == after
