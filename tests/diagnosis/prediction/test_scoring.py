"""How right a prediction is, and the reasons that it gives: compared with the forecast."""

from __future__ import annotations

import weakref

import pytest
import torch

import graphwidget as gw


@pytest.fixture
def w():
    return torch.ones(3, requires_grad=True)


def about(said: gw.Prediction, name: str) -> str:
    return next(answer.text for answer in said.answers if answer.about == name)


def test_it_is_usable_in_an_assert_and_runs_nothing(w):
    loss = (w * w).sum()
    assert gw.predict(loss, fails=False, frees=["MulBackward0.self", "MulBackward0.other"])
    assert not gw.predict(loss, fails=False, frees=["MulBackward0.self"])
    assert w.grad is None and gw.predict(loss, fails=False)


def test_the_score_is_the_share_of_right_answers(w):
    loss = (w * w).exp().sum()
    said = gw.predict(loss, fails=True, frees=["MulBackward0.self"])
    assert [(answer.about, answer.right) for answer in said.answers] == [
        ("fails", False),
        ("MulBackward0.self", True),
        ("MulBackward0.other", False),
        ("ExpBackward0.result", False),
    ]
    assert said.score == 1 / 4 and repr(said) == "<Prediction of loss.backward(): 1 of 4 right>"
    assert gw.predict(loss, frees=["MulBackward0.self"] * 3).score == 1 / 3, "said thrice is said once"
    assert gw.predict(loss).score is None and not gw.predict(loss)


def test_nothing_is_freed_is_an_answer(w):
    loss = (w * w).sum()
    assert gw.predict(loss, frees=[]).score == 0
    kept = gw.predict(loss, frees=[], retain_graph=True)
    assert kept.score == 1 and kept.explain() == "Right: nothing would be freed: retain_graph=True keeps everything."
    assert "no node that it reaches holds a saved tensor" in gw.predict(w.sum(), frees=[]).explain()
    leaf = torch.ones((), requires_grad=True)
    assert gw.predict(leaf, fails=False, frees=[]).score == 1


@pytest.mark.parametrize(
    "options, why",
    [
        ({"retain_graph": True}, "retain_graph=True keeps it"),
        ({"create_graph": True}, "create_graph=True keeps it"),
    ],
)
def test_what_is_kept_names_the_argument(w, options, why):
    loss = (w * w).sum()
    assert gw.predict(loss, frees=["MulBackward0.self"], **options).explain() == (
        f"Wrong: MulBackward0.self would not be freed: {why}."
    )
    assert gw.predict(loss, create_graph=True, retain_graph=False, frees=["MulBackward0.self", "MulBackward0.other"])


def test_what_is_not_saved_or_gone_already_is_distinguished_from_what_is_kept(w):
    loss = (w * 2 * w).sum()
    said = gw.predict(loss, frees=["MulBackward0[0].self"])
    assert "nothing is saved there, because MulBackward0[0] does not need it" in about(said, "MulBackward0[0].self")
    loss.backward()
    said = gw.predict(loss, frees=["MulBackward0[1].self"])
    assert said.explain() == "Wrong: MulBackward0[1].self would not be freed: an earlier call has freed it already."


def test_a_call_that_fails_is_two_answers_and_frees_what_ran_before(w):
    h = w.exp()
    h.sum().backward()
    loss = (h * h).sum()
    said = gw.predict(loss, fails="ExpBackward0", frees=["MulBackward0.self", "MulBackward0.other"])
    assert said.score == 1 and len(said.answers) == 4
    assert about(said, "fails").endswith("at ExpBackward0: its saved tensor result was freed by an earlier call.")
    early = gw.predict(loss, fails="MulBackward0")
    assert early.score == 0.5 and "which runs before and has what it needs" in about(early, "fails_at")
    assert gw.predict(loss, fails=False).score == 0 and gw.predict(loss, fails=True).score == 1


def test_what_a_failing_call_does_not_come_to_is_not_freed(w):
    changed = w.exp().tanh()
    changed.add_(1)
    said = gw.predict(changed.sum(), fails=True, frees=["ExpBackward0.result", "TanhBackward0.result"])
    for name in ("ExpBackward0.result", "TanhBackward0.result"):
        assert "would raise at TanhBackward0, before it is freed" in about(said, name)


def test_a_call_that_is_refused_at_once_fails_at_no_node(w):
    y = w * w
    said = gw.predict(y, fails="MulBackward0", frees=["MulBackward0.self"])
    assert "y.backward() would raise before any node runs: y is not a scalar" in about(said, "fails")
    assert said.score == 1 / 3 and "none runs" in about(said, "fails_at")
    assert gw.predict(y, fails=False, gradient=True) and gw.predict(y, gradient=True).call == "y.backward(gradient)"
    assert gw.predict(torch.ones(()), fails=True, frees=[]), "a tensor without a graph is no misuse"


class Doubtful(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        torch.autograd.backward(UNSEEN)
        return grad


UNSEEN: list[torch.Tensor] = []


def test_what_cannot_be_known_does_not_count(w):
    loss = (Doubtful.apply(w.exp()) * w).sum()
    assert gw.forecast(loss).ok is None
    said = gw.predict(loss, fails=True, frees=["MulBackward0.self", "ExpBackward0.result"])
    assert said.score is not None and said.answers[0].right is None and said.answers[0].text.startswith("Open: ")
    assert about(said, "ExpBackward0.result").startswith("Open: whether ExpBackward0.result would be freed")
    assert about(said, "MulBackward0.self").startswith("Right"), "that ran before"
    assert "cannot be known" in repr(said)
    assert gw.predict(loss, fails=True).score is None and not gw.predict(loss, fails=True)


def test_it_keeps_no_tensor_alive(w):
    with gw.track():
        loss = w.exp().sum()
        said, ref = gw.predict(loss, fails=False), weakref.ref(loss)
        del loss
        assert ref() is None and said


def test_misuse_names_the_next_step(w):
    with pytest.raises(TypeError, match="pass the tensor itself"):
        gw.predict("loss")
    with pytest.raises(TypeError, match="Did you mean 'frees'"):
        gw.predict(w.sum(), free=[])
    with pytest.raises(RuntimeError, match="nothing was tracked"):
        gw.predict(w.sum(), fails=False).check()
