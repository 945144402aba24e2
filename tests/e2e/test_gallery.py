"""The pictures of many programs: nothing covers anything, lines can be told apart, hues and places are kept."""

import json

import pytest
from gallery import FLAWS, NAMES, moments, views
from harness import open_view, rest, show

pytestmark = pytest.mark.e2e

HUES = """view => Object.fromEntries([...view.querySelectorAll(".gw-tree text.g-callno")].map(number =>
  [number.textContent, [...number.classList].find(name => /^g-r\\d$/.test(name))]))"""
PLACES = """view => Object.fromEntries([...view.querySelectorAll(".gw-tree [data-node]")].map(item => {
  const { x, y } = item.getBoundingClientRect();
  return [item.dataset.key, [Math.round(x), Math.round(y)]];
}))"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1300, 780])
def test_nothing_in_a_picture_is_covered_cut_or_run_into_one(browser, name, width):
    drawn = 0
    for moment, page in views(browser, name, width):
        view = page.locator(".graphwidget")
        assert view.evaluate(FLAWS) == [], f"{name}, {moment}"
        drawn += view.locator("[data-node]").count()
    assert drawn > 0 or name == "without_graph"


def failing(wire):
    """The numbers of a failing pair of calls, as people see them; None: the newest moment is no such call."""
    told = json.loads(wire)
    call = (told["calls"] or [{}])[-1]
    if call.get("result") != "raised" or call.get("freedBy") is None:
        return None
    return str(call["freedBy"] + 1), str(call["n"] + 1)


def newly_failing(name):
    """The moments of a program at which a pair has just failed."""
    before = None
    for moment, wire in moments(name):
        pair = failing(wire)
        if pair and pair != before:
            yield name, moment, wire
        before = pair


PAIRS = [pair for name in NAMES for pair in newly_failing(name)]


def test_there_are_failing_pairs_among_the_programs():
    assert {name for name, _, _ in PAIRS} >= {"four_roots", "lecture", "lstm_hidden", "two_losses", "vae"}


@pytest.mark.parametrize(("name", "moment", "wire"), PAIRS, ids=[f"{name} {moment}" for name, moment, _ in PAIRS])
def test_a_failing_pair_has_the_first_two_hues(browser, name, moment, wire):
    page = open_view(browser, wire, 1300, 0)
    rest(page)
    hues = page.locator(".graphwidget").evaluate(HUES)
    older, newer = failing(wire)
    assert newer in hues and older in hues
    assert {hues[older], hues[newer]} <= {"g-r1", "g-r2"}, f"{name}, {moment}"
    page.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_runs_well_moves_nothing(browser, name):
    """Cards stay at their places on the screen where the next picture has the same nodes."""
    before, last, compared = {}, None, 0
    for (moment, page), (_, wire) in zip(views(browser, name, 1300), moments(name)):
        told = json.loads(wire)
        places = page.locator(".graphwidget").evaluate(PLACES)
        ran_well = told["calls"] and told["calls"][-1]["result"] != "raised"
        # A finding that warns of a call has marks that need room.
        if ran_well and not told["findings"] and places.keys() == before.keys() and places:
            compared += 1
            assert places == before, f"{name}, {moment}, after {last}"
        before, last = places, moment
    if name in ("two_losses", "maml", "vae", "transformer", "cnn", "four_roots", "gradient_penalty"):
        assert compared > 0, "nothing was compared"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_low_view_shows_the_failing_node_and_its_calls(browser, theme):
    page = open_view(browser, moments("two_losses")[-1][1], 900, 220, theme)
    rest(page)
    view = page.locator(".graphwidget")
    assert view.bounding_box()["height"] == 220
    assert sorted(view.locator(".gw-spark text").all_text_contents()) == ["1", "2"]
    assert view.locator(".gw-best").is_visible() and not view.locator(".gw-foot").is_visible()
    assert [flaw for flaw in view.evaluate(FLAWS) if "sight" not in flaw] == []
    page.close()


def test_a_picture_of_another_width_is_drawn_for_it(browser):
    page = open_view(browser, "", 1300, 0)
    show(page, moments("two_losses")[-1][1])
    rest(page)
    for width in (780, 620, 480, 1300):
        page.evaluate("width => { document.querySelector('#view').style.width = `${width}px`; }", width)
        page.wait_for_timeout(400)
        rest(page)
        assert page.locator(".graphwidget").evaluate(FLAWS) == [], width
    page.close()
