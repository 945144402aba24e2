"""Which of several lines of one name keeps the graphs that pile up."""

from told import findings_of

START = "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\nx = torch.ones(4, 3)"
STEP = """def step():
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    return loss
def score():
    return 0.5"""
LISTS = """def fit():
    losses = []
    for _ in range(8):
        losses.append(step())
    return losses
def check():
    losses = []
    for _ in range(2):
        losses.append(score())
    return losses
losses = fit()
checked = check()"""


def test_a_list_of_another_function_is_another_list() -> None:
    found = [one for one in findings_of(START, STEP, LISTS) if one.kind == "leak"]
    assert found and [edit.start[0] for one in found for edit in one.fixes[0].edits] == [4]


BOOK = """class Book(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.net = nn.Linear(3, 3)
    def forward(self, x):
        mean = x.mean()
        y = self.net(x - mean)
        self.mean.mul_(0.9)
        return y
    def keep(self, y):
        self.mean.add_(y.mean(0) * 0.1)
book = Book()
opt = torch.optim.SGD(book.net.parameters(), lr=0.01)"""
LOOP = """for _ in range(8):
    opt.zero_grad()
    y = book(torch.ones(4, 3))
    y.pow(2).mean().backward()
    opt.step()
    book.keep(book(torch.ones(4, 3)))"""


def test_a_local_variable_is_no_attribute_of_its_name() -> None:
    found = [one for one in findings_of(BOOK, LOOP) if one.kind == "leak" and "mean" in one.text]
    assert found and all(
        "`mean = " not in fix.text and "Parameter" not in fix.text for one in found for fix in one.fixes
    )
