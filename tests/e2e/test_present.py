"""A lecture that goes on: the picture stays the one of the newest cell, fills its frame, and nothing covers anything."""

from pathlib import Path

import pytest
from harness import screenshot, wait_for

pytestmark = pytest.mark.e2e

HERE = Path(__file__).resolve().parent
COVERED = (HERE / "flaws.js").read_text()
LECTURE = (HERE.parents[1] / "js" / "test" / "programs" / "lecture.py").read_text().split("# %%\n")[1:]


def settled(widget):
    """Wait until the picture rests."""
    page = widget.page
    last = None
    for _ in range(40):
        page.wait_for_timeout(250)
        now = widget.locator(".gw-tree").inner_html()
        if now == last:
            return
        last = now


def names(widget):
    return sorted(widget.locator("[data-role=root]").evaluate_all("all => all.map(each => each.dataset.name)"))


@pytest.mark.parametrize("width", [1440, 900])
def test_each_section_of_a_lecture_has_the_picture_for_itself(open_notebook, shots, width):
    notebook = open_notebook("%load_ext graphwidget", "%graphwidget", *LECTURE)
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    for cell in (0, 1):
        notebook.run_cell(cell)
    widget = notebook.output(1).locator(".graphwidget").first
    widget.wait_for()
    for number in range(len(LECTURE)):
        notebook.run_cell(2 + number)
        notebook.scroll_to(1)
        settled(widget)
        assert widget.evaluate(COVERED) == [], LECTURE[number]
        height = widget.bounding_box()["height"]
        assert 420 <= height <= 760 or width < 1000, "narrow: the panel stands below"
    # The last cell ran well: earlier errors are one line each, and earlier graphs one chip.
    assert widget.locator(".gw-pill").get_attribute("data-shape") == "ok"
    assert widget.locator(".gw-finding").count() == widget.locator(".gw-finding.gw-past").count()
    chip = widget.locator("[data-role=older]")
    assert "older graphs: " in chip.inner_text()
    assert "product" not in names(widget)
    screenshot(widget, shots / f"present-{width}.png")
    chip.click()
    wait_for(lambda: "product" in names(widget), 20, "the older graphs")
    chip.click()
    wait_for(lambda: "product" not in names(widget), 20, "the present alone")
    assert notebook.problems() == []


def test_the_failing_pair_has_the_first_two_hues_in_every_section(open_notebook):
    notebook = open_notebook("%load_ext graphwidget", *LECTURE[:12], "%graphwidget")
    for cell in range(14):
        notebook.run_cell(cell)
    widget = notebook.output(13).locator(".graphwidget").first
    widget.wait_for()
    settled(widget)
    hues = widget.locator(".gw-tree [data-role=line] text.g-callno").evaluate_all(
        "all => all.map(each => [each.textContent, [...each.classList].find(name => /^g-r\\d$/.test(name))])"
    )
    assert sorted(hues) == [["16", "g-r1"], ["17", "g-r2"]]
    carrier = widget.locator("[data-role=tag][data-carrier=true]")
    assert [carrier.get_attribute("aria-label"), carrier.text_content()] == ["temp[0]", "temp[0]"]
