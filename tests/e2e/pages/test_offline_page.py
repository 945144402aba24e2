"""The one-file page in a browser that has no network: it draws, travels in time, answers and exports."""

import struct
import xml.etree.ElementTree as ET

import pytest
from harness import wait_for
from small_graphs import PROGRAM

pytestmark = pytest.mark.e2e


def test_it_travels_in_time_and_tells_who_keeps_a_node(open_page, shots):
    page, log = open_page(PROGRAM)
    page.screenshot(path=str(shots / "page.png"))
    assert page.locator(".gw-pill").inner_text() == "recording · after In[4], which raised"
    page.locator('[role=treeitem][data-node="PowBackward0"]').click()
    kept = page.locator(".gw-panel")
    kept.get_by_text("Kept alive by").wait_for()
    kept.get_by_text("del loss").wait_for()
    page.keyboard.press("{")
    page.locator('.graphwidget[data-past="true"]').wait_for()
    page.keyboard.press("{")
    page.locator('[role=treeitem][data-node="PowBackward0"][data-state="held"]').wait_for()
    page.screenshot(path=str(shots / "page_past.png"))
    page.keyboard.press("n")
    page.locator('[role=treeitem][data-node="PowBackward0"][data-state="freed"]').wait_for()
    assert page.locator(".gw-answer.gw-err").count() == 0
    assert log.problems() == [] and log.offsite() == []


def test_it_foretells_a_call_and_steps_through_it_but_runs_nothing(open_page, shots):
    page, log = open_page(PROGRAM.rsplit("# %%", 1)[0])  # without the call that raises
    button = page.get_by_role("button", name="loss.backward()", exact=True)
    button.hover()
    page.locator(".gw-panel").get_by_text("raise").first.wait_for()
    page.screenshot(path=str(shots / "page_forecast.png"))
    button.click()
    page.get_by_text("This page is a recording: nothing runs here.").wait_for()
    page.keyboard.press("s")
    status = page.locator(".gw-play [role=status]")
    choice = page.locator('select[aria-label="Call to step through"]')
    calls = choice.locator("option").all_inner_texts()
    assert len(calls) == 4, "two recorded calls, and two that would follow"
    for label in calls:
        choice.select_option(label=label)
        page.locator(".gw-play input[type=range]").wait_for()
        page.keyboard.press(".")
        wait_for(lambda: status.inner_text().startswith("Step 1 of"), f"a step of {label}")
    page.screenshot(path=str(shots / "page_steps.png"))
    assert log.problems() == []


def test_its_menu_saves_what_is_on_screen_as_svg_and_png(open_page):
    page, log = open_page(PROGRAM)

    def saved(button):
        page.get_by_label("More: table view, export, tidy, keys").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        return download.value.suggested_filename, download.value.path().read_bytes()

    name, svg = saved("Export SVG")
    assert name == "autograd-graph.svg"
    texts = " ".join("".join(each.itertext()) for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    for words in (
        "Autograd graph after In[4], which raised",
        "needs saved tensors that",
        "saved tensor: freed",
        "PowBackward0",
    ):
        assert words in texts
    name, png = saved("Export PNG")
    assert name == "autograd-graph.png" and png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    box = ET.fromstring(svg).attrib
    assert (width, height) == (round(2 * float(box["width"])), round(2 * float(box["height"])))
    assert log.problems() == []


def test_text_of_the_program_does_not_run(open_page):
    evil = "</script><img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
    page, log = open_page(PROGRAM.replace(".mean()", f".mean()  # {evil}"), name="<b>&amp;.py")
    assert page.title() == "<b>&amp;.py"
    assert page.locator("img, b:text('.py')").count() == 0
    page.locator('[role=treeitem][data-node="PowBackward0"]').click()
    assert evil in page.locator(".gw-src").inner_text()
    assert log.problems() == []
