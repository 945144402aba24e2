"""Lines that cut the graph: at names and elements of containers, and where a container takes a tensor in."""

import pytest

from graphwidget.diagnosis.source import containers, detaching, syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Owner


def test_carriers_are_detached_by_statements_that_can_be_written():
    assert detaching.detached(["h", "fit:g", "f.__closure__[s]", "Out[3]"], []) == ["h = h.detach()", "g = g.detach()"]
    assert detaching.detached(["mem['v']"], []) == ["mem['v'] = mem['v'].detach()"]


@pytest.mark.parametrize(
    ("cell", "holder", "inside", "new"),
    [
        ("temp.append(h)", "temp", ["[2]"], "temp.append(h.detach())"),
        ("self.seen['a'].append(a + b)", "t.seen", ["['a'][0]"], "self.seen['a'].append((a + b).detach())"),
        ("r.append(R(loss, out=y))", "r", ["[0].loss", "[0].out"], "r.append(R(loss.detach(), out=y.detach()))"),
        ("r.append((3, h, name))", "r", ["[0][1]", "[1][1]"], "r.append((3, h.detach(), name))"),
        ("r.append({'step': i, 'loss': h})", "r", ["[0]['loss']"], "r.append({'step': i, 'loss': h.detach()})"),
        ("d['k'] = y", "d", ["['k']"], "d['k'] = y.detach()"),
        ("temp += [y]", "temp", ["[0]"], "temp += [y.detach()]"),
    ],
)
def test_what_a_container_keeps_is_detached_where_it_is_put_in(cell, holder, inside, new):
    ((line, edits),) = containers.detached_in(1, cell, holder, inside)
    assert (line, text_edit.apply(cell, edits)) == (1, new)


@pytest.mark.parametrize(
    ("cell", "inside"),
    [("log['step'].append(i)", "['loss'][0]"), ("log['loss'] = make()", "['loss'].h"), ("rows.append(h)", "[0]")],
)
def test_a_line_that_puts_something_else_in_is_left_alone(cell, inside):
    assert containers.detached_in(1, cell, "log", [inside]) == []


@pytest.mark.parametrize(
    ("paths", "containers", "line"),
    [
        (["s[0]"], [("tuple", 2)], "s = (s[0].detach(), s[1])"),
        (["s[1]"], [], "s = (s[0], s[1].detach(), *s[2:])"),
        (["s[0]", "s[1]"], [("tuple", 2)], "s = tuple(one.detach() for one in s)"),
        (["s[0]", "s[1]"], [("tuple", 3)], "s = (s[0].detach(), s[1].detach(), s[2])"),
        (["d[0]", "d[3]"], [("dict", 2)], "d = {key: one.detach() for key, one in d.items()}"),
        (["m['b'][0]"], [("list", 1), ("dict", 2)], "m['b'] = [one.detach() for one in m['b']]"),
        (
            ["n[0][0]", "n[0][1]"],
            [("tuple", 2), ("list", 1)],
            "n = [tuple(one.detach() for one in each) for each in n]",
        ),
        (["r[0][0]"], [("tuple", 2), ("list", 1)], "r = [(each[0].detach(), each[1]) for each in r]"),
        (["r[0]['h']"], [("dict", 1), ("list", 1)], "r = [{**each, 'h': each['h'].detach()} for each in r]"),
        (["r[0].h", "r[1].h"], [], "for each in r: each.h = each.h.detach()"),
    ],
)
def test_a_container_stays_what_it_is(paths, containers, line):
    owners = [Owner(path, at, 0, "element", tuple(containers)) for at, path in enumerate(paths) if containers]
    assert detaching.detached(paths, [], owners) == [line]


@pytest.mark.parametrize(
    ("cell", "paths", "line"),
    [
        ("S = namedtuple('S', 'h, c')", ["fit:s.h"], "s = s._replace(h=s.h.detach())"),
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass S:\n    h: Tensor\n",
            ["s.h"],
            "s = dataclasses.replace(s, h=s.h.detach())",
        ),
    ],
)
def test_the_cells_show_which_fields_cannot_be_set(cell, paths, line):
    assert detaching.detached(paths, [cell]) == [line]


def test_the_cells_show_how_a_queue_is_made():
    owners = [Owner("q[1]", 0, 0, "element", (("deque", 1),))]
    cell = "q = collections.deque([a, b], maxlen=2)"
    assert detaching.detached(["q[1]"], [cell], owners) == [
        "q = collections.deque((one.detach() for one in q), q.maxlen)"
    ]


def test_an_element_with_a_name_is_a_field_of_a_named_tuple():
    owners = [Owner("s.h", 0, 0, "element"), Owner("s.c", 0, 1, "element")]
    assert detaching.detached(["s.h", "s.c"], [], owners) == ["s = s._replace(h=s.h.detach(), c=s.c.detach())"]


def test_what_a_container_is_comes_from_the_capture_and_is_a_guess_without():
    listed = [Owner(f"fit:s[{at}]", at, 0, "element", (("list", 2),)) for at in range(2)]
    known = detaching.Detaching([], listed)
    assert known.lines(["fit:s[0]"]) == ["s = [one.detach() for one in s]"]
    assert known.sure(["fit:s[0]"])
    assert not detaching.Detaching([]).sure(["s[0]"])
    assert not detaching.Detaching([], [Owner("s[0]", 0, 0, "element", (("MyList", -1),))]).sure(["s[0]"])
    pair = Owner("s[1][0]", 0, 0, "element", (("tuple", 3), ("list", 4)))
    lines = detaching.Detaching([], [pair]).lines(["s[1][0]"])
    assert lines == ["s = [(each[0].detach(), each[1], each[2]) for each in s]"]


def test_only_what_can_be_detached_is_where_a_list_holds_something_else_too():
    first = Owner("s[0]", 0, 0, "element", (("list", 3),))
    assert detaching.detached(["s[0]"], [], [first]) == [
        "s = [one.detach() if hasattr(one, 'detach') else one for one in s]"
    ]
    rows = [Owner(f"r[{at}][0]", at, 0, "element", (("list", 2), ("list", 2))) for at in range(2)]
    assert detaching.detached(["r[0][0]"], [], rows) == [
        "r = [[one.detach() if hasattr(one, 'detach') else one for one in each] for each in r]"
    ]


def test_it_is_a_guess_that_each_element_is_a_container_where_one_is_not_known_to_be():
    pairs = [Owner(f"s[{at}][0]", at, 0, "element", (("tuple", 2), ("list", 3))) for at in range(2)]
    assert not detaching.Detaching([], pairs).sure(["s[0][0]"])
    last = Owner("s[2][0]", 2, 0, "element", (("tuple", 2), ("list", 3)))
    assert detaching.Detaching([], [*pairs, last]).sure(["s[0][0]"])


def test_a_container_that_takes_a_variable_in_tells_where_it_is():
    cell = "bank.append((h, y))\nself.rows.append({'h': h})\nlast[k] = h\nbank.append(other)\n"
    assert set(containers.taken_in(cell, ["h"])) == {"bank[0][0]", "self.rows[0]['h']", "last[0]"}


def test_a_running_total_adds_detached_values():
    text = "total += a + b"
    edits = containers.detached_value(1, text, syntax.parse(text).body[0].value)
    assert text_edit.apply(text, edits) == "total += (a + b).detach()"
