"""Views made under `no_grad` that are written to where operations are recorded, and tensors sent with their graphs."""

from told import findings_of

CROP = """
image = nn.Parameter(torch.zeros(4))
@torch.no_grad()
def crop(batch):
    return batch[:4]
x = torch.rand(8)
"""


def test_a_write_of_what_is_trained_is_part_of_the_graph():
    (found,) = findings_of(CROP, "view = crop(x)\nview.mul_(2).add_(image)")
    first, second = found.fixes
    assert (found.made_at.cell, found.made_at.line) == (1, 5) and "under `torch.no_grad()`" in found.text
    assert first.id == "remove_no_grad" and [edit.start[0] for edit in first.edits] == [3]
    assert second.id == "under_no_grad" and second.choice and "`image`" in second.price


def test_a_write_of_constants_may_be_made_under_no_grad():
    (found,) = findings_of(CROP, "h = image.repeat(2)\nview = crop(h)\nview.mul_(2)")
    assert not any(one.price for one in found.fixes)


def test_a_function_that_writes_keeps_its_decorator():
    cell = CROP.replace("    return batch[:4]", "    batch.mul_(2)\n    return batch[:4]")
    (found,) = findings_of(cell, "view = crop(x)\nview.add_(image)")
    assert found.fixes[0].id == "remove_no_grad" and found.fixes[0].edits == ()


def test_all_that_has_a_graph_is_sent_as_values():
    send = "import torch.multiprocessing as mp\nqueue = mp.SimpleQueue()\nw = torch.ones(3, requires_grad=True)\n"
    (found,) = findings_of(send + "a, b, c = w * 2, torch.ones(2), w * 3\nqueue.put((b, {'a': a}, [c]))")
    assert "to another process" in found.headline
    assert [edit.new for edit in found.fixes[0].edits] == [".detach()", ".detach()"]
