"""A lecture that goes on: the picture stays the one of the newest cell, fills its frame, and nothing covers anything."""

from pathlib import Path

import pytest
from harness import rest, screenshot, wait_for

pytestmark = pytest.mark.e2e

TESTS = Path(__file__).resolve().parents[1]
COVERED = (TESTS / "pages" / "flaws.js").read_text()
LECTURE = (TESTS.parents[1] / "js" / "test" / "programs" / "lecture.py").read_text().split("# %%\n")[1:]
TEMP_LIST = 11  # the section whose second call fails at what `temp[0]` kept
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 900, "height": 1000}


def names(widget):
    return sorted(widget.locator("[data-role=root]").evaluate_all("all => all.map(each => each.dataset.name)"))


def hues(widget):
    """The hue of each call that a line under a flag names."""
    return widget.locator(".gw-tree [data-role=line] text.g-callno").evaluate_all(
        "all => all.map(each => [each.textContent, [...each.classList].find(name => /^g-r\\d$/.test(name))])"
    )


def test_each_section_of_a_lecture_has_the_picture_for_itself(open_notebook, shots):
    notebook = open_notebook("%load_ext graphwidget", "%graphwidget", *LECTURE)
    page = notebook.page
    page.set_viewport_size(WIDE)
    for cell in (0, 1):
        notebook.run_cell(cell)
    widget = notebook.output(1).locator(".graphwidget").first
    widget.wait_for()
    for number in range(len(LECTURE)):
        notebook.run_cell(2 + number)
        notebook.scroll_to(1)
        for size in (NARROW, WIDE):
            page.set_viewport_size(size)
            page.wait_for_timeout(150)  # until the view knows its new size
            rest(page)
            assert widget.evaluate(COVERED) == [], (size, LECTURE[number])
        assert 420 <= widget.bounding_box()["height"] <= 760
        if number == TEMP_LIST:
            assert sorted(hues(widget)) == [["16", "g-r1"], ["17", "g-r2"]]
            carrier = widget.locator("[data-role=tag][data-carrier=true]")
            assert [carrier.get_attribute("aria-label"), carrier.text_content()] == ["temp[0]", "temp[0]"]
    # The last cell ran well: earlier errors are one line each, and earlier graphs one chip.
    assert widget.locator(".gw-pill").get_attribute("data-shape") == "ok"
    assert widget.locator(".gw-finding").count() == widget.locator(".gw-finding.gw-past").count()
    chip = widget.locator("[data-role=older]")
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        assert "older graphs: " in chip.inner_text()
        assert "product" not in names(widget)
        screenshot(widget, shots / f"present-{size['width']}.png")
    chip.click()
    wait_for(lambda: "product" in names(widget), "the older graphs")
    chip.click()
    wait_for(lambda: "product" not in names(widget), "the present alone")
    assert notebook.problems() == []
