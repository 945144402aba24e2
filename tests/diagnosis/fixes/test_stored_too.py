"""What keeps the graph of the same value as what piles up: a meter's last value beside the sum."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply
from graphwidget.model import Finding

START = "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\nx = torch.ones(4, 3)"
LOOP = """for _ in range(8):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    """
METER = """from collections import deque
class Meter:
    def __init__(self):
        self.val, self.total, self.count, self.seen, self.avg = 0.0, 0.0, 0, deque(maxlen=2), 0.0
    def update(self, val, n=1):
        "Add a value."
        LINES
meter = Meter()"""
KEPT = "del loss\nassert not [k for k, v in vars(meter).items() for v in (v if isinstance(v, deque) else [v]) if torch.is_tensor(v) and v.requires_grad]"


def leak_of(cell: str, *more: str) -> Finding:
    (found,) = [one for one in findings_of(START, cell, *more) if one.kind == "leak"]
    return found


def fixed(cell: str, loop: str, end: str) -> str:
    found = leak_of(cell, loop)
    text = apply(cell, found.fixes[0].edits)
    assert not [one for one in findings_of(START, text, loop, end) if one.kind in ("leak", "error")]
    space: dict[str, object] = {"__name__": "__main__"}
    exec(f"import torch\nfrom torch import nn\n{START}\n{text}\n{loop}\n{end}", space)
    return text


def meter(*lines: str) -> str:
    return METER.replace("LINES", "\n        ".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("self.val = val", "self.total = self.total + val * n", "self.count += n"),
        ("self.total += val * n", "self.count += n", "self.val = val"),
        ("self.val = val * 2", "self.total = self.total + val"),
        ("self.seen.append(val)", "self.total = self.total + val", "self.avg = self.total / 2"),
        ("self.avg = self.avg * 0.9 + val * 0.1", "self.val = val"),
    ],
)
def test_it_is_detached_where_it_comes_in(lines):
    text = fixed(meter(*lines), LOOP + "meter.update(loss, 4)", KEPT)
    assert '"Add a value."\n        val = val.detach()\n' in text
    assert text.count("detach") == 1


def test_a_value_that_is_a_number_in_some_calls_is_asked():
    cell = meter("self.val = val", "self.total = self.total + val * n")
    text = fixed(
        cell, LOOP + "for v in {'b': loss.item(), 'a': loss}.values():\n        meter.update(v)", "del v\n" + KEPT
    )
    assert "val = val.detach() if hasattr(val, 'detach') else val\n" in text


def test_what_is_returned_keeps_its_graph():
    cell = meter("self.val = val", "self.total = self.total + val", "return val")
    loop = LOOP.replace("mean()", "mean()\n    loss = meter.update(loss)")
    text = fixed(cell, loop, KEPT)
    assert "self.val = val.detach()" in text and "self.total + val.detach()" in text


def test_what_a_loop_gives_is_detached_in_the_loop():
    cell = """class Board:
    def __init__(self):
        self.last, self.total = {}, {"a": 0.0, "n": 0}
    def record(self, stats):
        for name, value in stats.items():
            self.last[name] = value
            self.total[name] = self.total[name] + value
meter = Board()"""
    end = "del loss\nassert not meter.last['a'].requires_grad and not meter.total['a'].requires_grad"
    text = fixed(cell, LOOP + "meter.record({'a': loss, 'n': 1})", end)
    assert text.count("detach") and "value = value.detach() if hasattr(value, 'detach') else value\n" in text


def test_what_others_need_keeps_its_graph():
    cell = meter("self.val = val", "self.total = self.total + val")
    loop = LOOP.replace("    loss.backward()", "    meter.update(loss)\n    (meter.val * 2).backward()")
    text = apply(cell, leak_of(cell, loop).fixes[0].edits)
    assert "self.val = val\n" in text and "self.total + val.detach()" in text


def test_a_number_that_is_stored_beside_it_stays_as_it_is():
    cell = meter("self.count = n", "self.total = self.total + val * n")
    text = fixed(cell, LOOP + "meter.update(loss, 4)", KEPT)
    assert "self.count = n\n" in text and text.count("detach") == 1


def test_an_average_that_begins_with_the_value_itself_is_detached_where_that_comes_in():
    lines = ["if self.val is None:", "    self.avg = val", "else:", "    self.avg = self.avg * self.rate + val * 0.1"]
    for more in ([], ["self.val = val"]):
        cell = (
            meter(*lines, *more).replace("self.val,", "self.rate, self.val,").replace("= 0.0, 0.0", "= 0.9, None, 0.0")
        )
        cell = cell.replace("self.val is None", "self.val is None" if more else "self.avg == 0.0")
        text = fixed(
            cell + "\nseconds = Meter()\nimport time", LOOP + "seconds.update(time.time()); meter.update(loss)", KEPT
        )
        assert "        val = val.detach() if hasattr(val, 'detach') else val\n" in text and "self.detach" not in text
