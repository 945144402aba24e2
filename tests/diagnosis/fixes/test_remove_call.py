"""Two calls that run one backward through the same wrapper."""

from told import findings_of

PROGRAM = """
class Amp:
    def __init__(self, opt):
        self.opt, self.n = opt, 0
    def backward(self, loss):
        BODY
class Task:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.amp = Amp(torch.optim.SGD(self.net.parameters(), 0.1))
    def criterion(self, k):
        loss = self.net(torch.ones(2, 3)).square().mean()
        if k >= FIRST:
            self.amp.backward(loss)
        return loss
    def fit(self):
        for k in range(5):
            loss = self.criterion(k)
            self.amp.backward(loss)
            self.amp.opt.step()
            self.amp.opt.zero_grad()
Task().fit()
"""


def fixes(body, first="0"):
    (found,) = findings_of(PROGRAM.replace("BODY", body).replace("FIRST", first))
    return [(fix.id, fix.verified, fix.text, bool(fix.edits)) for fix in found.fixes]


def test_the_second_is_left_out_also_where_the_wrapper_scales():
    """With `retain_graph=True` the call would run, and double each gradient."""
    text = "Remove `self.amp.backward(loss)` (In[1], line 19): In[1], line 14 has run this backward."
    for body in ("loss.backward()", "(loss / 2).backward()"):
        assert fixes(body) == [("remove_duplicate_call", True, text, True)]


def test_it_is_advice_where_the_line_does_more_or_is_the_only_one_in_other_passes():
    text = "Leave out `self.amp.backward(loss)` (In[1], line 19) where In[1], line 14 has run this backward."
    for arguments in (("self.n += 1; loss.backward()",), ("loss.backward()", "2")):
        assert fixes(*arguments) == [("remove_duplicate_call", False, text, False)]
