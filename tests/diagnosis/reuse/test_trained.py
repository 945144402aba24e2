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


CYCLED = """
import itertools
enc, dec = nn.Linear(4, 8), nn.Linear(8, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
data = torch.randn(2, 6, 4)
encoded = itertools.cycle(map(enc, data))
for step, code in enumerate(itertools.islice(encoded, 5)):
    loss = dec(code).tanh().pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_a_cut_is_not_verified_that_stops_the_training_of_what_this_line_has_trained():
    (finding,) = findings_of(CYCLED)
    cuts = [fix for fix in finding.fixes if fix.id == "detach"]
    assert cuts and cuts[0].starves == ("enc.bias", "enc.weight") and not any(fix.verified for fix in cuts)


def test_a_cycle_of_what_is_made_item_by_item_makes_it_again_in_each_round():
    (finding,) = findings_of(CYCLED.replace("(map(enc, data))", "(enc(one) for one in data)"))
    fix = finding.fixes[0]
    # The items might come from an iterator, which is empty in the next round: only a trial shows that they do not.
    assert (fix.id, fix.verified) == ("recompute_in_loop", False)
    new = "itertools.chain.from_iterable((enc(one) for one in data) for _ in itertools.count())"
    assert [edit.new for edit in fix.edits] == [new]


CARRIED = """
rnn = nn.RNN(3, 4)
opt = torch.optim.SGD(rnn.parameters(), lr=0.1)
h = torch.zeros(1, 2, 4)
for step in range(3):
    out, h = rnn(torch.randn(5, 2, 3), h)
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_a_cut_stays_verified_where_each_pass_reaches_the_leaf_by_itself():
    (finding,) = findings_of(CARRIED)
    assert [(fix.id, fix.verified, fix.starves) for fix in finding.fixes][:1] == [("detach", True, ())]
