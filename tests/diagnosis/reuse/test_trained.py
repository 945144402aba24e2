"""What counts as trained: it must not lose its gradient by a fix that stands first."""

from tests.support.told import findings_of

CODES = """
enc, dec = nn.Linear(4, 8), nn.Linear(8, 4)
opt = torch.optim.Adam(dec.parameters())
data = torch.randn(6, 4)
codes = enc(data)
for step in range(4):
    loss = (dec(codes) - data).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_a_module_that_no_optimizer_is_made_of_is_not_trained():
    (finding,) = findings_of(CODES)
    assert [fix.id for fix in finding.fixes] == ["detach", "recompute_in_loop"]


def test_a_module_of_which_a_later_line_makes_an_optimizer_is():
    later = "    if step == 2:\n        opt_enc = torch.optim.Adam(enc.parameters())\n"
    (finding,) = findings_of(CODES + later)
    assert finding.fixes[0].id == "recompute_in_loop"
