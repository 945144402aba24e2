"""Other names by which code speaks of a container: properties, functions, arguments, attributes and local names."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.other_names import other_names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class A:\n    @property\n    def kept(self):\n        return self._kept", ["kept"]),
        ("class A:\n    def bucket(self, k):\n        return self._kept.setdefault(k, [])", ["bucket"]),
        ("def add(into, x):\n    into.append(x)\nadd(run._kept, 1)", ["into"]),
        ("class Log:\n    def __init__(self, to):\n        self.to_ = to\nlog = Log(to=_kept)", ["to", "to_"]),
        ("def f(self):\n    rows = self._kept\n    rows.append(1)", ["rows"]),
        ("last = self._kept[-3:]", []),  # a copy
        ("last = list(self._kept)", []),
        ("def f(_):\n    return _kept2", []),
    ],
)
def test_names_of_one_container(text, told):
    assert [one.name for one in other_names((text,), "_kept")] == told


def test_a_local_name_counts_within_its_function():
    text = "def f(self):\n    rows = self.kept\n    rows.append(1)\ndef g(rows):\n    rows.append(2)"
    (rows,) = other_names((text,), "kept")
    assert rows.inside is not None and rows.inside.name == "f"


KEEPING = """
class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self._seen = nn.Linear(2, 1), {}
    METHODS
model = Keeper()
for _ in range(8):
    loss = model.net(torch.ones(1, 2)).pow(2).sum()
    KEEP
    loss.backward()
"""
PROPERTY = "@property\n    def seen(self):\n        return self._seen"
METHOD = "def bucket(self, key):\n        return self._seen.setdefault(key, [])"
FUNCTION = (
    "def keep(self, into, **new):\n        for k, v in new.items():\n            into.setdefault(k, []).append(v)"
)


@pytest.mark.parametrize(
    ("methods", "keep", "line", "new"),
    [
        (PROPERTY, "model.seen.setdefault('loss', []).append(loss)", 12, "loss.detach()"),
        (METHOD, "model.bucket('loss').append(loss)", 11, "loss.detach()"),
        (FUNCTION, "model.keep(model._seen, loss=loss)", 8, "v.detach()"),
    ],
)
def test_what_piles_up_is_detached_where_it_is_put_in_by_another_name(methods, keep, line, new):
    (found,) = findings_of(KEEPING.replace("METHODS", methods).replace("KEEP", keep))
    fix = found.fixes[0]
    assert (found.kind, fix.id, fix.at[1], [edit.new for edit in fix.edits]) == ("leak", "detach", line, [".detach()"])
    assert new in fix.text
