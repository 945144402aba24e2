"""Two calls of one line: the iterations that are told are those of the loop in which they differ."""

from told import findings_of

NET = "cell, x = nn.RNNCell(2, 2), torch.ones(1, 2)"


def told(*cells: str) -> str:
    (found,) = findings_of(NET, *cells)
    return found.text


TRAIN = """def train(n):
    h = None
    for i in range(n):
        h = cell(x, h)
        loss = h.sum()
        loss.backward()
"""
EPOCHS = "for epoch in range(2):\n    train(3)"


def test_a_state_that_the_loop_of_a_function_carries():
    text = told(TRAIN, EPOCHS)
    assert "`h` was built in In[2], line 4, iteration 0 of `for i`." in text
    assert "(In[2], line 6, iteration 0 of `for i`) freed" in text
    assert "Iteration 1 of `for i` reaches the same node" in text
    assert "epoch" not in text


def test_the_number_counts_from_the_pass_of_the_outer_loop():
    text = told(TRAIN.replace("h = cell", "h = None if epoch == 0 else h\n        h = cell"), EPOCHS)
    assert "iteration 0 of `for i`" in text and "Iteration 1 of `for i`" in text


def test_a_loop_of_a_function_between_is_the_one_that_is_counted():
    fit = "def fit():\n    h = None\n    for epoch in range(2):\n        h = step(h)\n"
    step = "def step(h):\n    for i in range(1):\n        h = cell(x, h)\n        h.sum().backward()\n    return h\n"
    text = told(step, fit, "fit()")
    assert "iteration 0 of `for epoch`" in text and "Iteration 1 of `for epoch`" in text and "`for i`" not in text


def test_an_outer_loop_whose_inner_loop_has_one_pass():
    text = told(
        "h = None\nfor epoch in range(2):\n    for i in range(1):\n        h = cell(x, h)\n        h.sum().backward()"
    )
    assert "iteration 0 of `for epoch`) freed" in text and "Iteration 1 of `for epoch` reaches" in text


def test_a_number_is_not_said_where_not_each_pass_makes_the_call():
    text = told(TRAIN.replace("loss.backward()", "if i != 1:\n            loss.backward()"), EPOCHS)
    assert "(In[2], line 7) freed" in text and "A later pass of `for i` reaches" in text
    text = told(TRAIN.replace("h = cell", "if i == 0:\n            continue\n        h = cell"), EPOCHS)
    assert "A later pass of `for i` reaches" in text


def test_of_several_loops_none_is_named():
    text = told(TRAIN.replace("for i in range(n):\n", "for k in range(n):\n      for i in range(2):\n"), EPOCHS)
    assert "iteration" not in text.lower() and "`for" not in text


def test_what_was_made_before_the_inner_loop_was_made_once():
    made = (
        TRAIN.replace("h = None", "h = cell(x)").replace("h = cell(x, h)", "pass").replace("h.sum()", "(h * i).sum()")
    )
    text = told(made, EPOCHS)
    assert "`h` was built once, in In[2], line 2." in text and "Iteration 1 of `for i`" in text
