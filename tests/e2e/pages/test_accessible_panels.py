"""The panels for teaching, the lens and a low view: what axe finds, in both themes, with forced colours and high contrast."""

from pathlib import Path

import pytest
from gallery import moments
from harness import open_view, rest

pytestmark = pytest.mark.e2e

AXE = Path(__file__).resolve().parents[3] / "js/node_modules/axe-core/axe.min.js"
FOUND = "() => axe.run('.graphwidget').then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
# Every text of the panel, the timeline and the lens whose contrast with what is behind it is below 4.5.
FAINT = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (el) => {
    for (let at = el; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const written = (el) => [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const all = [...document.querySelectorAll(".gw-panel *, .gw-head *, .gw-foot *, .gw-lens *")];
  return all.filter((el) => el instanceof HTMLElement && written(el) && el.checkVisibility() && !el.closest(":disabled, .gw-aside"))
    .filter((el) => {
      const [a, b] = [light(rgb(getComputedStyle(el).color)), light(behind(el))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    }).map((el) => `${el.tagName} ${el.className}: ${el.textContent.slice(0, 30)}`);
}"""


def key(page, letter):
    page.locator("[role=treeitem]").first.focus()
    page.keyboard.press(letter)
    rest(page)


def predict(page):
    key(page, "q")
    page.locator(".gw-guess").wait_for()


def present(page):
    page.evaluate("() => window.model.set('presenting', true)")
    page.locator(".graphwidget[data-present]").wait_for()
    rest(page)


def lens(page):
    page.locator("[role=treeitem][data-key^='g']").first.dblclick()
    page.locator(".gw-lens").wait_for()
    rest(page)


# Part: program, its moment, height, and what opens it.
PARTS = {
    "prediction": ("two_losses", 1, 0, predict),
    "present": ("two_losses", -1, 0, present),
    "present without a finding": ("two_losses", 1, 0, present),
    "lens": ("transformer", -1, 0, lens),
    "low": ("two_losses", -1, 220, lambda page: None),
    "comparison": ("two_losses", -1, 0, lambda page: key(page, "c")),
    "enlarged timeline": ("leak", -1, 0, lambda page: key(page, "b")),
    "in-place": ("gan_step_early", 2, 0, lambda page: None),
}


def opened(browser, part, theme, before=lambda page: None, width=1100):
    program, at, height, opens = PARTS[part]
    page = open_view(browser, "", width, height, theme)
    before(page)
    page.evaluate("wire => window.model.set('wire', wire)", moments(program)[at][1])
    page.locator("[role=treeitem]").first.wait_for()
    rest(page)
    opens(page)
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_axe_finds_nothing(browser, shots, part, theme):
    page = opened(browser, part, theme)
    page.add_script_tag(path=str(AXE))
    assert page.evaluate(FOUND) == []
    assert page.evaluate(FAINT) == []
    page.locator(".graphwidget").screenshot(path=str(shots / f"panel-{part.replace(' ', '-')}-{theme}.png"))
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_with_forced_colours_every_text_is_readable(browser, shots, part, theme):
    forced = {"color_scheme": theme, "forced_colors": "active"}
    page = opened(browser, part, theme, lambda page: page.emulate_media(**forced))
    assert page.evaluate(FAINT) == []
    page.locator(".graphwidget").screenshot(path=str(shots / f"forced-{part.replace(' ', '-')}-{theme}.png"))
    page.close()


@pytest.mark.parametrize(("ground", "ink"), [("#000000", "#ffffff"), ("#ffffff", "#000000")])
@pytest.mark.parametrize("part", PARTS)
def test_in_a_high_contrast_host_every_text_is_readable(browser, part, ground, ink):
    def host(page):
        page.evaluate(
            """([ground, ink]) => {
              document.body.removeAttribute("data-jp-theme-light");
              document.body.style.cssText =
                `--vscode-editor-background:${ground};--vscode-foreground:${ink};--vscode-sideBar-background:${ground};background:${ground}`;
              document.body.className = "vscode-body vscode-high-contrast";
            }""",
            [ground, ink],
        )

    page = opened(browser, part, "light", host)
    wanted = "dark" if ground == "#000000" else "light"
    assert page.locator(".graphwidget").get_attribute("data-theme") == wanted
    assert page.evaluate(FAINT) == []
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", ["present", "present without a finding", "prediction", "lens"])
def test_at_900_px_nothing_of_it_is_cut(browser, shots, part, theme):
    page = opened(browser, part, theme, width=780)
    view = page.locator(".graphwidget")
    cut = "e => [...e.querySelectorAll('.gw-head, .gw-panel, .gw-lens')].filter(x => x.scrollWidth > x.clientWidth + 1).map(x => x.className)"
    assert view.evaluate(cut) == []
    view.screenshot(path=str(shots / f"at-900-{part.replace(' ', '-')}-{theme}.png"))
    page.close()


def test_code_that_is_wider_than_the_panel_needs_no_scrolling(browser):
    """A part that scrolls can be reached with a pointer only, unless it is one more stop for the Tab key."""
    page = open_view(browser, moments("gradient_penalty")[-1][1], 780, 0, "light")
    rest(page)
    code = page.locator(".gw-panel pre").first
    wide = "pre => { pre.style.whiteSpace = 'pre'; const w = pre.scrollWidth; pre.style.whiteSpace = ''; return [w, pre.clientWidth, pre.scrollWidth]; }"
    unbroken, room, broken = code.evaluate(wide)
    assert unbroken > room >= broken
    page.add_script_tag(path=str(AXE))
    assert page.evaluate(FOUND) == []
    page.close()
