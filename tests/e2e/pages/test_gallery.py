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


def failing(wire):
    """The numbers of a failing pair of calls, as people see them; None: the newest moment is no such call."""
    told = json.loads(wire)
    call = (told["calls"] or [{}])[-1]
    if call.get("result") != "raised" or call.get("freedBy") is None:
        return None
    return str(call["freedBy"] + 1), str(call["n"] + 1)


def told_of(wire):
    """Whether its newest call ran well: what warns of the next one takes free room, or is cut."""
    told = json.loads(wire)
    return bool(told["calls"]) and told["calls"][-1]["result"] != "raised"


FAILING_PAIRS = {"four_roots", "lecture", "lstm_hidden", "two_losses", "vae"}
QUIET_CALLS = {
    "step_before_second",
    "gan_step_early",
    "two_losses",
    "maml",
    "vae",
    "transformer",
    "cnn",
    "four_roots",
    "gradient_penalty",
}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_covered_cut_or_run_into_one_and_hues_and_places_are_kept(browser, name):
    """Wide: also, a pair of calls that has just failed has the first two hues, and a call that runs well moves nothing."""
    before, last, pair, pairs, compared = {}, None, None, 0, 0
    for (moment, page), (_, wire) in zip(views(browser, name, 1300), moments(name)):
        view = page.locator(".graphwidget")
        if view.evaluate(FLAWS):
            rest(page)  # a slow machine may draw once more
        assert view.evaluate(FLAWS) == [], f"{name}, {moment}"
        places, now = view.evaluate(PLACES), failing(wire)
        if now and now != pair:
            pairs += 1
            hues = view.evaluate(HUES)
            assert {hues.get(number) for number in now} <= {"g-r1", "g-r2"}, f"{name}, {moment}: {hues}"
        if told_of(wire) and places.keys() == before.keys() and places:
            compared += 1
            assert places == before, f"{name}, {moment}, after {last}"
        before, last, pair = places, moment, now
    assert pairs or name not in FAILING_PAIRS
    assert compared or name not in QUIET_CALLS
    assert before or name == "without_graph"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_holds_in_a_narrow_view(browser, name):
    for moment, page in views(browser, name, 780):
        assert page.locator(".graphwidget").evaluate(FLAWS) == [], f"{name}, {moment}"


@pytest.mark.parametrize("name", ["concatenated", "gan_three_nets", "long_names", "two_losses"])
def test_and_in_a_compact_one_as_far_as_it_goes(browser, name):
    for moment, page in views(browser, name, 480):
        flaws = page.locator(".graphwidget").evaluate(FLAWS)
        assert [flaw for flaw in flaws if "sight" not in flaw] == [], f"{name}, {moment}"


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
