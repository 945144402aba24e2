"""A tensor that a table or an attribute got once: it was built at the line that stored it, not in the module."""

import pytest

from tests.support.told import findings_of

ENCODER = """class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
    def forward(self, x):
        return torch.tanh(self.net(x))
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
    ],
    ids=["in a dict", "as an attribute", "in a list"],
)
def test_it_was_built_where_it_was_stored(test: str, store: str, read: str, name: str) -> None:
    (found,) = findings_of(ENCODER, TABLE.format(test=test, store=store, read=read))
    assert found.text.startswith(f"{name} was built in In[2], line 6")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 6)
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 6)
