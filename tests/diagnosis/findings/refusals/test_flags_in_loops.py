"""Flags of what a net has computed, switched off in a loop: it is computed without a graph instead."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

SETUP = "net = nn.Linear(3, 3)\nx = torch.ones(2, 3)\n"
FEATURES = "def features(x):\n    h = net(x)\n    return [h, h.tanh()], h.sum()\n"


def test_the_line_that_computes_them_records_nothing_and_the_loop_goes() -> None:
    program = FEATURES + "feats, out = features(x)\nfor f in feats + [out]:\n    f.requires_grad = False\nprint(out)\n"
    (found,) = findings_of(SETUP, program)
    assert "`f` is no leaf" in found.headline and found.fixes[0].id == "under_no_grad"
    assert apply(program, found.fixes[0].edits) == (
        FEATURES + "with torch.no_grad():\n    feats, out = features(x)\nprint(out)\n"
    )


def test_a_loop_stays_that_does_more_or_goes_over_what_several_lines_made_or_one_that_makes_more() -> None:
    more = "feats, out = features(x)\nfor f in feats:\n    f.requires_grad = False\n    print(f)\n"
    several = "feats, out = features(x)\nfeats = feats + [out * 2]\nfor f in feats:\n    f.requires_grad = False\n"
    beside = "feats, out = features(x)\nfor f in feats:\n    f.requires_grad = False\nout.backward()\n"
    for body in (more, several, beside):
        (found,) = findings_of(SETUP, FEATURES + body)
        assert found.fixes[0].id == "detach" and not found.fixes[0].edits
