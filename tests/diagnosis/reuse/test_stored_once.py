"""A tensor that a table or an attribute got once: it was built at the line that stored it, not in the module."""

import pytest

from tests.support.told import findings_of

ENCODER = """class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
    def forward(self, x):
        return torch.tanh(self.net(x))
    def both(self, x):
        return x, self(x)
encoder = Encoder()
opt = torch.optim.SGD(encoder.parameters(), lr=0.1)
"""
TABLE = """class Table:
    def __init__(self):
        self.known, self.first, self.rows = {{}}, None, []
    def get(self, x):
        if {test}:
            {store}
        return {read}
table = Table()
for _ in range(2):
    loss = table.get(torch.ones(2, 3)).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("test", "store", "read", "name"),
    [
        ("'a' not in self.known", "self.known['a'] = encoder(x)", "self.known['a']", "`table.known['a']`"),
        ("self.first is None", "self.first = encoder(x)", "self.first", "`table.first`"),
        ("not self.rows", "self.rows.append(encoder(x))", "self.rows[0]", "`table.rows[0]`"),
        ("self.first is None", "self.first = encoder.both(x)", "self.first[1]", "`table.first[1]`"),
        ("'a' not in self.known", "self.known['a'] = encoder.both(x)", "self.known['a'][1]", "`table.known['a'][1]`"),
        ("self.first is None", "self.first, self.rows = encoder.both(x)", "self.rows", "`table.rows`"),
    ],
    ids=["in a dict", "as an attribute", "in a list", "a pair", "a pair in a dict", "two attributes"],
)
def test_it_was_built_where_it_was_stored(test: str, store: str, read: str, name: str) -> None:
    (found,) = findings_of(ENCODER, TABLE.format(test=test, store=store, read=read))
    assert found.text.startswith(f"{name} was built in In[2], line 6")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 6)
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 6)
    assert found.stored_at is not None and (found.stored_at.cell, found.stored_at.line) == (2, 6)
    assert "stored by" not in found.text


BUILT_BEFORE = """class Table:
    def __init__(self):
        self.first, self.rows, self.total = None, [], 0.0
    def put(self, row):
        self.rows.append(row)
    def get(self, x):
        if self.first is None and not self.rows:
            row = encoder(x)
            {store}
        return {read}
table, kept = Table(), None
def keep(row):
    global kept
    kept = row
for _ in range(2):
    loss = table.get(torch.ones(2, 3)).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("store", "read", "name", "stored", "line"),
    [
        ("self.first = row", "self.first", "`table.first`", "self.first = row", 9),
        ("self.first = (x, row)", "self.first[1]", "`table.first[1]`", "self.first = (x, row)", 9),
        ("self.put(row)", "self.rows[0]", "`table.rows[0]`", "self.rows.append(row)", 5),
        ("keep(row); self.first = 1", "kept", "`kept`", "kept = row", 14),
    ],
    ids=["as an attribute", "in a tuple", "by a method", "by a function, as a global"],
)
def test_what_was_built_before_it_was_stored(store: str, read: str, name: str, stored: str, line: int) -> None:
    (found,) = findings_of(ENCODER, BUILT_BEFORE.format(store=store, read=read))
    assert found.stored_at is not None and (found.stored_at.cell, found.stored_at.line) == (2, line)
    assert found.text.startswith(f"{name} was built in In[1], line 6")
    assert f", and stored by `{stored}` (In[2], line {line}). " in found.text


def test_a_line_to_which_nothing_leads_is_not_said_to_store_it() -> None:
    other = "class Other:\n    def more(self, x):\n        self.first = x\n"
    text = BUILT_BEFORE.format(store="setattr(self, 'first', row)", read="self.first")
    (found,) = findings_of(ENCODER + other, text)
    assert "stored by" not in found.text
