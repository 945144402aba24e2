"""What axe finds, and what it cannot see: forced colours, high contrast, sizes, live regions, tab stops, the table."""

from pathlib import Path

import pytest
from harness import wait_for
from small_graphs import PROGRAM

pytestmark = pytest.mark.e2e

AXE = Path(__file__).resolve().parents[2] / "js/node_modules/axe-core/axe.min.js"
# The contrast of an element's colour with that of the view, as WCAG defines it.
CONTRAST = """([of, property]) => {
  const root = document.querySelector(".graphwidget");
  const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(rgb(getComputedStyle(root).backgroundColor));
  return Math.min(...[...document.querySelectorAll(of)].map((el) => {
    const ink = light(rgb(getComputedStyle(el)[property]));
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  }));
}"""


def contrast(page, of=".gw-tree .g-note:not(.g-quiet)", property="fill"):
    return page.evaluate(CONTRAST, [of, property])


def without_policy(page):
    """The page's policy allows its own script only: the tests' scripts are let in."""
    page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_part(open_page, scheme):
    def prepare(page):
        without_policy(page)
        page.emulate_media(color_scheme=scheme)

    page, _ = open_page(PROGRAM, prepare=prepare)
    page.add_script_tag(path=str(AXE))

    def found():
        return page.evaluate("() => axe.run('.graphwidget').then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")

    button = page.get_by_role("button", name="loss.backward()", exact=True)
    parts = {
        "finding": (lambda: None, "Escape"),
        "node": (lambda: page.locator("[role=treeitem]").nth(2).click(), "Escape"),
        "forecast": (lambda: (button.hover(), page.locator(".gw-forecast").wait_for()), "Escape"),
        "steps": (lambda: page.keyboard.press("s"), "s"),
        "table": (lambda: page.keyboard.press("t"), "t"),
        "legend": (lambda: page.keyboard.press("l"), "Escape"),
        "menu": (lambda: page.keyboard.press("?"), "Escape"),
        "search": (lambda: page.keyboard.press("/"), "Escape"),
        "past": (lambda: page.keyboard.press("{"), "n"),
    }
    page.locator(".gw-pill").click()
    for part, (opens, closes) in parts.items():
        opens()
        page.wait_for_timeout(400)
        assert found() == [], part
        page.keyboard.press(closes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_reach_the_whole_drawing(open_page, shots, scheme):
    page, _ = open_page(PROGRAM, prepare=lambda page: page.emulate_media(color_scheme=scheme, forced_colors="active"))
    for of in (
        ".gw-tree .g-note",
        ".gw-tree .g-code",
        ".gw-tree .g-order",
        ".gw-tree .g-op",
        ".gw-line text:not(.g-paper)",
    ):
        assert contrast(page, of) > 15, of
    page.screenshot(path=str(shots / f"forced_{scheme}.png"))


@pytest.mark.parametrize("ground, ink", [("#000000", "#ffffff"), ("#ffffff", "#000000")])
def test_a_high_contrast_host_is_known_by_its_background(open_page, ground, ink):
    """VS Code's high-contrast themes are called neither dark nor light."""
    page, _ = open_page(PROGRAM, prepare=lambda page: page.emulate_media(color_scheme="light"))
    page.evaluate(
        """([ground, ink]) => {
          document.body.style.cssText = `--vscode-editor-background:${ground};--vscode-foreground:${ink};background:${ground}`;
          document.body.className = "vscode-body vscode-high-contrast";
        }""",
        [ground, ink],
    )
    wanted = "dark" if ground == "#000000" else "light"
    wait_for(lambda: page.locator(".graphwidget").get_attribute("data-theme") == wanted, f"{wanted}")
    assert contrast(page, ".gw-tree .g-op") > 15 and contrast(page) > 6


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_secondary_text_is_as_readable_as_ours_whatever_the_host_has(open_page, theme):
    page, _ = open_page(PROGRAM)
    page.evaluate(
        """(theme) => {
          document.body.style.cssText = theme === "light"
            ? "--jp-layout-color0:#fff;--jp-ui-font-color1:rgba(0,0,0,.87);--jp-ui-font-color2:rgba(0,0,0,.54)"
            : "--jp-layout-color0:#111;--jp-ui-font-color1:#fff;--jp-ui-font-color2:rgba(255,255,255,.5)";
          document.body.setAttribute("data-jp-theme-light", String(theme === "light"));
        }""",
        theme,
    )
    wait_for(lambda: page.locator(".graphwidget").get_attribute("data-theme") == theme, f"{theme}")
    assert contrast(page) > 6 and contrast(page, ".gw-mute", "color") > 6


def test_buttons_keep_their_size_when_the_picture_shrinks(open_page):
    page, _ = open_page(PROGRAM)
    page.locator(".gw-pill").click()
    for _ in range(4):
        page.keyboard.press("-")
    wait_for(lambda: float(page.locator(".gw-canvas").get_attribute("data-scale")) < 0.7, "a small picture")
    button = page.locator(".gw-run").first
    box = button.bounding_box()
    drawn = button.evaluate(
        "el => parseFloat(getComputedStyle(el).fontSize) * el.getBoundingClientRect().width / el.offsetWidth"
    )
    assert box["height"] >= 23.9 and drawn >= 9


def test_an_alert_is_said_once(open_page):
    page, _ = open_page(PROGRAM)
    alert = page.locator(".gw-panel [role=alert]")
    assert "needs saved tensors that" in alert.inner_text() and alert.locator("button").count() == 0
    page.evaluate(
        """() => {
          window.said = 0;
          const panel = document.querySelector(".gw-panel");
          const alert = panel.querySelector("[role=alert]");
          new MutationObserver((records) => {
            for (const { target, removedNodes } of records)
              if (alert.contains(target) || [...removedNodes].includes(alert)) window.said += 1;
          }).observe(panel, { childList: true, characterData: true, attributes: true, subtree: true });
        }"""
    )
    for position in (0, 2, 1):
        page.locator("[role=treeitem]").nth(position).click()
    page.get_by_role("button", name="loss.backward()", exact=True).hover()
    page.locator(".gw-forecast").wait_for()
    page.locator(".gw-pill").hover()
    page.keyboard.press("Escape")
    assert page.evaluate("window.said") == 0


def test_the_graph_is_one_tab_stop_and_no_region_is_empty(open_page):
    page, _ = open_page(PROGRAM)
    page.locator('[aria-label="Zoom out"]').focus()
    where = (
        "() => document.activeElement.closest('[role=tree]') ? document.activeElement.getAttribute('role') : 'outside'"
    )
    page.keyboard.press("Tab")
    assert page.evaluate(where) == "treeitem"
    page.keyboard.press("Tab")
    assert page.evaluate(where) == "outside"
    empty = "() => [...document.querySelectorAll('.graphwidget section[aria-label]')].filter(s => s.checkVisibility() && !s.textContent.trim()).map(s => s.ariaLabel)"
    assert page.evaluate(empty) == []


def test_rows_of_the_table_have_ids_and_say_what_keeps_them(open_page):
    page, _ = open_page(PROGRAM)
    page.locator(".gw-pill").click()
    page.keyboard.press("t")
    table = page.locator(".gw-table table")
    table.wait_for()
    assert table.locator("caption").inner_text() == "Autograd graph: 7 nodes, 4 leaves"
    heads = table.locator("thead th").all_inner_texts()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    ids = [row[heads.index("id")] for row in rows]
    assert len(set(ids)) == len(rows) == 11
    first = rows[0]
    assert first[heads.index("node")] == "MeanBackward0" and "loss" in first[heads.index("kept by")]
    target = first[heads.index("hands gradients to")].split()[-1]
    assert rows[ids.index(target)][heads.index("node")] == "PowBackward0"
