"""Containers that keep graphs: many short windows, entries that are written anew, sums under another name."""

import pytest

from tests.support.told import findings_of, said

SETUP = "from collections import defaultdict, deque\nnet = nn.Linear(3, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\n"
LOOP = """for step in range(30):
    losses = net(torch.rand(4, 3)).pow(2).mean(0)
    opt.zero_grad()
    losses.sum().backward()
    opt.step()
    {keep}
"""
WINDOWS = "history = defaultdict(lambda: deque(maxlen=10))\n"


def test_many_short_windows_together_keep_the_graphs_of_all_passes() -> None:
    keep = "for at, one in enumerate(net(torch.rand(4, 3)).pow(2).mean(0)): history[(7 * step + at) % 90].append(one)"
    (found,) = findings_of(SETUP + WINDOWS, LOOP.format(keep=keep))
    assert (found.kind, found.severity) == ("leak", "warning") and found.carriers == ("history",)
    assert "append(one.detach())" in found.fixes[0].edit[1]


def test_one_short_window_keeps_a_few() -> None:
    assert said(SETUP + WINDOWS, LOOP.format(keep="history['loss'].append(losses.sum())")) == []


def test_entries_that_are_written_anew_pile_up_while_there_are_ever_more() -> None:
    keep = "for at in torch.randint(0, 200, (8,)).tolist(): priorities[at] = losses.sum() + 1"
    (found,) = findings_of("torch.manual_seed(0)\n" + SETUP + "priorities = {}\n", LOOP.format(keep=keep))
    assert found.kind == "leak" and found.carriers == ("priorities",)


def test_entries_of_which_there_are_always_as_many_do_not() -> None:
    keep = "latest[step % 5] = losses.sum() + 1"
    assert said(SETUP + "latest = {}\n", LOOP.format(keep=keep)) == []


STATS = """class Stats:
    def __init__(self): self.kept = {}
    def of(self, name): return self.kept.setdefault(name, torch.zeros(1))
stats = Stats()
def bump(buffer, value):
    buffer.add_(value)
"""


@pytest.mark.parametrize(
    "keep, cut",
    [
        ("stats.of('loss').add_(losses.sum())", "stats.of('loss').add_(losses.sum().detach())"),
        ("bump(stats.of('loss'), losses.sum())", "buffer.add_(value.detach())"),
        ("stats.of('loss').mul_(0.9).add_(losses.sum(), alpha=0.1)", "add_(losses.sum().detach(), alpha=0.1)"),
    ],
)
def test_a_sum_is_cut_where_it_is_written_whatever_the_line_calls_it(keep: str, cut: str) -> None:
    (found,) = findings_of(STATS + SETUP, LOOP.format(keep=keep))
    assert found.kind == "leak" and cut in found.fixes[0].edit[1]


def test_a_mean_that_is_taken_behind_the_passes_is_not_what_is_cut() -> None:
    passes = LOOP.format(keep="total += losses.sum()").replace("\n", "\n    ")
    epochs = f"for epoch in range(2):\n    total = 0\n    {passes}\n    total /= len(range(30))\n"
    (found,) = findings_of(SETUP, epochs)
    assert "total += losses.sum().detach()" in found.fixes[0].edit[1]


REPLAY = """import random
random.seed(0)
replay = []
def rollout():
    state = torch.zeros(1, 3)
    for _ in range(8):
        state = net(state)[:, :3]
        replay.append([state])
def learn():
    batch = random.sample(replay, min(16, len(replay)))
    loss = net(torch.cat([one[0] for one in batch]).detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_a_batch_has_drawn_is_not_dropped() -> None:
    found = findings_of(SETUP + REPLAY, "for episode in range(15):\n    rollout()\n    learn()\n")
    assert [one.carriers for one in found] == [("replay",)]
    assert "append([state.detach()])" in found[0].fixes[0].edit[1]


def test_a_window_from_which_batches_are_drawn_has_a_bound() -> None:
    assert said(SETUP + REPLAY, "for episode in range(15):\n    rollout()\n    learn()\n    del replay[:-16]\n") == []


@pytest.mark.parametrize(
    "keep, cut",
    [
        ("kept.append(lambda: losses.sum().item())", "lambda losses=losses.detach(): losses.sum()"),
        ("kept.append(lambda x, *y: losses.sum().item())", "lambda x, *y, losses=losses.detach(): losses.sum()"),
        ("kept.append(lambda x: losses.sum().item())", "lambda x, *, losses=losses.detach(): losses.sum()"),
        ("kept.append(lambda one=losses.sum(): one.item())", "lambda one=losses.sum().detach(): one"),
        ("kept.append(functools.partial(print, losses.sum()))", "partial(print, losses.sum().detach())"),
        ("kept.append(functools.partial(print, end=losses.sum()))", "partial(print, end=losses.sum().detach())"),
        (
            "more = losses * 2; print(more)\n        kept.append(lambda: print(losses, more))",
            "lambda losses=losses.detach(), more=more.detach(): print(losses, more)",
        ),
        ("def show(): print(losses)\n        kept.append(show)", "def show(losses=losses.detach()): print(losses)"),
        (
            "values = {'loss': losses.sum()}\n        def show(): print(values)\n        kept.append(show)",
            "values = {'loss': losses.sum().detach()}",
        ),
        (
            "values = {k: losses.sum() for k in 'ab'}\n        print(values)\n        kept.append(lambda: print(values))",
            "lambda values={k: v.detach() if hasattr(v, 'detach') else v for k, v in values.items()}: print(values)",
        ),
    ],
)
def test_what_a_function_in_a_container_keeps_is_cut_where_the_function_gets_it(keep: str, cut: str) -> None:
    class_ = (
        f"import functools\nclass Report:\n    def add(self, losses):\n        {keep}\nkept, report = [], Report()\n"
    )
    (found,) = findings_of(SETUP, class_, LOOP.format(keep="report.add(losses)"))
    assert found.kind == "leak" and cut in found.fixes[0].edit[1]


def test_an_element_that_a_variable_names_at_the_end_is_not_dropped() -> None:
    class_ = (
        "class Report:\n    def add(self, losses):\n        kept.append(lambda: losses)\nkept, report = [], Report()\n"
    )
    loop = LOOP.format(keep="report.add(losses)") + "for show in kept[:1]:\n    show()\n"
    (found,) = findings_of(SETUP, class_, loop)
    assert found.kind == "leak" and found.carriers == ("kept",)


def test_a_variable_that_is_bound_anew_behind_a_function_has_no_default_of_before() -> None:
    add = "kept.append(lambda: losses.sum().item())\n        losses = losses * 2"
    class_ = f"class Report:\n    def add(self, losses):\n        {add}\nkept, report = [], Report()\n"
    (found,) = findings_of(SETUP, class_, LOOP.format(keep="report.add(losses)"))
    assert found.kind == "leak" and found.fixes[0].edit == ()


@pytest.mark.parametrize(
    "keep",
    [
        "kept.append(lambda: losses.sum().backward(retain_graph=True))",
        "def run(): losses.sum().backward(retain_graph=True)\n        kept.append(run)",
        "kept.append(functools.partial(torch.autograd.backward, losses.sum(), retain_graph=True))",
    ],
)
def test_what_a_function_runs_backward_on_keeps_its_graph(keep: str) -> None:
    class_ = (
        f"import functools\nclass Report:\n    def add(self, losses):\n        {keep}\nkept, report = [], Report()\n"
    )
    loop = LOOP.replace("losses.sum().backward()", "report.add(losses); kept[-1]()").format(keep="pass")
    (found,) = findings_of(SETUP, class_, loop)
    assert found.kind == "leak" and "Only if no backward needs" in found.fixes[0].text
    assert not any(fix.id == "detach" and fix.edits for fix in found.fixes)


HISTORY = """class History:
    def __init__(self): self.records = []
    def on_step_end(self, output): self.records.append(dict(output))
history = History()
"""


def test_a_dict_of_losses_is_kept_with_each_of_them_detached() -> None:
    loop = LOOP.format(keep="history.on_step_end({'loss': losses.sum(), 'first': losses[0]})")
    (found,) = findings_of(SETUP + HISTORY, loop)
    assert "append({k: v.detach() for k, v in output.items()})" in found.fixes[0].edit[-1]
    assert [fix.id for fix in found.fixes] == ["detach", "del_variable"]


def test_what_a_line_reads_is_detached_and_let_go_of_behind_it_only() -> None:
    loop = LOOP.format(keep="history.on_step_end({'loss': losses.sum(), 'step': step})")
    (found,) = findings_of(SETUP + HISTORY, loop + "print(sum(one['loss'].item() for one in history.records))\n")
    asked = "append({k: v.detach() if hasattr(v, 'detach') else v for k, v in output.items()})"
    assert [fix.id for fix in found.fixes] == ["detach", "del_variable"] and asked in found.fixes[0].edit[-1]
    assert "Lines that read them must come before that" in (found.fixes[1].price or "")
