"""A function that modifies what it was given: the copy is made where a caller hands it in."""

import pytest
from told import findings_of

TOOLS = """
def squash(x):
    x.clamp_(0, 1)

def through(x):
    squash(x)

def part(x):
    view = x.view(-1)
    view.add_(1)

def scale(x, k=2):
    x *= k
    return x

def centre(x):
    x -= x.mean()
    y = x * 2
    return y

def each(xs):
    for x in xs:
        x.mul_(3)

def halve(x):
    x *= 0.5
    if x.sum() > 9:
        raise ValueError

def call(function, x):
    function(x)

class Mean:
    def __init__(self, start):
        self.mean = start

    def take(self, x):
        self.mean.lerp_(x, 0.5)
"""
PROGRAM = """
w = torch.ones(4, requires_grad=True)
h = w.exp()
out = (h * w).sum()
{}
(out + h.sum()).backward()
"""
KEEPS = "Modify a copy: `h = h.clone()` before `{}` (In[2], line 5), as `{}` modifies what it is given."


def fixes(line):
    (found,) = findings_of(TOOLS, PROGRAM.format(line))
    assert found.kind == "inplace"
    return found, [fix.text for fix in found.fixes]


@pytest.mark.parametrize(
    "line, function",
    [
        ("squash(h)", "squash"),
        ("through(h)", "squash"),
        ("part(h)", "part"),
        ("scale(h)", "scale"),
        ("scale(k=3, x=h)", "scale"),
        ("halve(h)", "halve"),
    ],
)
def test_the_copy_is_made_before_the_call_whose_function_has_no_more_use_for_the_tensor(line, function):
    found, texts = fixes(line)
    assert texts == [KEEPS.format(line, function)]
    assert found.fixes[0].verified and found.modified_at.cell == 1


@pytest.mark.parametrize("line, new", [("h = scale(h)", "x = x * k"), ("h = centre(h)", "x = x - x.mean()")])
def test_a_function_that_goes_on_with_the_new_value_gets_a_tensor_of_its_own(line, new):
    found, texts = fixes(line)
    assert texts[0].startswith(f"Write `{new}` instead of ") and found.fixes[0].verified


@pytest.mark.parametrize("line", ["each([h])", "some = [h]\neach(some)", "for one in [h]:\n    squash(one)"])
def test_where_the_caller_has_no_name_for_it_there_is_advice_in_words(line):
    found, texts = fixes(line)
    if "squash" in line:
        assert not found.fixes[0].edits
        return
    assert texts == ["Hand `each` a copy, and go on with the copy: it modifies what it is given."]
    assert not found.fixes[0].edits


def test_what_the_function_itself_had_saved_gets_a_tensor_of_its_own_there():
    step = "def step(x):\n    y = x * w\n    x += 1\n    (y + x).sum().backward()\n"
    made = "w = torch.ones(4, requires_grad=True)\nh = w.exp()\n"
    (found,) = findings_of(step, made + "step(h)")
    assert found.fixes[0].text.startswith("Write `x = x + 1` instead of ") and found.fixes[0].verified


def test_a_name_that_only_another_function_has_is_written_nowhere():
    found, texts = fixes("call(lambda t: t.add_(1), h)")
    assert (found.modified_at.cell, texts[0][:34]) == (2, "Modify a copy: `h = h.clone()` bef")
    assert not any(name in " ".join(texts) for name in ("`t = ", "`x = "))


def test_one_write_is_one_write_also_if_the_caller_knows_the_memory_by_another_tensor():
    found, _ = fixes("Mean(h.detach()).take(torch.ones(4))")
    assert (found.modified_at.cell, found.modified_at.source) == (1, "self.mean.lerp_(x, 0.5)")
    assert "So did" not in found.text


def test_a_leaf_is_modified_later_and_gets_no_copy():
    found, texts = fixes("with torch.no_grad():\n    squash(w)")
    assert texts and not any("clone()" in text for text in texts)


PAIR = """
w = torch.ones(4, requires_grad=True)
p, q = w * 2, w * 3
{}
(out + p.sum() + q.sum()).backward()
"""


def test_all_that_a_function_modifies_is_copied_before_the_call():
    tools = "def clear(a, b):\n    a[0], b[0] = 0.0, 1.0\n"
    (found,) = findings_of(tools, PAIR.format("out = (p * q).sum()\nclear(p, q)"))
    (fix,) = found.fixes
    assert fix.verified and fix.edit[:2] == ("+ p = p.clone()", "+ q = q.clone()")
    assert fix.text.startswith("Modify copies: `p = p.clone()`, `q = q.clone()` before `clear(p, q)`")


MIX = "def mix(a, b):\n    x = a * b\n    y = a - b\n    a[0], b[0] = x[0], y[0]\n"


def test_a_function_that_saves_what_it_modifies_for_its_caller_reads_copies():
    (found,) = findings_of(MIX, PAIR.format("out = 0\nmix(p, q)"))
    (fix,) = found.fixes
    assert fix.verified and fix.edit == ("- x = a * b", "+ x = a.clone() * b.clone()")


def test_what_lines_before_the_call_have_saved_as_well_is_advice():
    found, *_ = findings_of(MIX, PAIR.format("out = (p * q).sum()\nmix(p, q)"))
    (fix,) = found.fixes
    assert not fix.verified and not fix.edits and "go on with these" in fix.text


def test_the_context_of_a_function_is_none_of_the_arguments_of_apply() -> None:
    own = """class Emptied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        out = a + b
        a.zero_()
        return out
    @staticmethod
    def backward(ctx, g):
        return g, g
add = Emptied.apply"""
    use = "p = torch.rand(3, requires_grad=True)\nq = p.exp()\nz = add(q, p)\nz.sum().backward()"
    (found,) = findings_of(own, use)
    assert [edit.new.strip() for edit in found.fixes[0].edits] == ["q = q.clone()"]


COMPUTING = """
def same(t):
    doubled = t * 2
    return t
def rest(t):
    return torch.cumprod(t, -1)
def render(field, dists):
    sigma = torch.relu(field)
    alpha = {}
    weights = alpha * rest(1.0 - alpha)
    alpha[..., -1] = 0.0
    return weights.sum()
net = nn.Linear(3, 4)
f = net(torch.randn(5, 3))
render(f, torch.rand(5, 4)).backward()
"""


@pytest.mark.parametrize("value", ["1 - torch.exp(-sigma * dists)", "sigma.clamp(0, 1)", "rest(field)", "-field"])
def test_what_a_function_has_computed_nobody_has_handed_it(value):
    (finding,) = findings_of(COMPUTING.format(value))
    fix = finding.fixes[0]
    assert "Modify a copy: `alpha = alpha.clone()`" in fix.text and fix.verified
    assert not any("what it is given" in one.text for one in finding.fixes)


@pytest.mark.parametrize("value", ["field", "field.view(5, 4)", "field.contiguous()", "same(field)"])
def test_what_is_the_tensor_of_the_caller_is_still_handed_in(value):
    (finding,) = findings_of(COMPUTING.format(value))
    assert "`render` modifies what it is given" in finding.fixes[0].text
