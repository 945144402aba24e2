// What covers what in a view, and what is too small to read: a list of sentences. `root`: the element of the view.
(root) => {
  const canvas = root.querySelector(".gw-canvas");
  const box = (element) => {
    const { left: x, top: y, width: w, height: h } = element.getBoundingClientRect();
    return { x, y, w, h };
  };
  const view = box(canvas);
  const overlap = (a, b) =>
    a.x + 1 < b.x + b.w && b.x + 1 < a.x + a.w && a.y + 1 < b.y + b.h && b.y + 1 < a.y + a.h;
  const isSeen = (element) => !element.closest("[hidden]") && overlap(box(element), view);
  const all = (selector) => [...root.querySelectorAll(selector)].filter(isSeen);
  const keyOf = (element) => element.closest("[data-key]")?.dataset.key ?? element.getAttribute("aria-label");
  const named = (what, element, area = box(element)) => ({ what: `${what} ${keyOf(element)}`, key: keyOf(element), ...area });

  const texts = all(".gw-tree text").map((element) => {
    const area = box(element);
    const air = area.h * 0.16; // above capitals and below descenders
    return named(`"${element.textContent}" of`, element, { ...area, y: area.y + air, h: area.h - 2 * air });
  });
  const bodies = all(".gw-item").flatMap((item) => {
    const body = item.querySelector(".g-node, .g-flag, .g-leaf, .g-tag");
    return body ? [named("card", body)] : [];
  });
  const over = [...all(".gw-rootbar").map((bar) => named("buttons", bar)), ...all(".gw-mini").map((map) => named("map", map))];
  const solid = [...bodies, ...over];

  const found = [];
  const pairs = (list) => list.flatMap((a, i) => list.slice(i + 1).map((b) => [a, b]));
  const both = [...pairs(solid), ...pairs(texts), ...texts.flatMap((t) => solid.map((s) => [t, s]))];
  for (const [a, b] of both) if ((a.key !== b.key || solid.includes(a)) && overlap(a, b)) found.push(`${a.what} / ${b.what}`);
  const scale = Number(canvas.dataset.scale);
  for (const text of all(".gw-tree text")) {
    const size = Number.parseFloat(getComputedStyle(text).fontSize) * scale;
    if (size < 8.95) found.push(`${size.toFixed(1)} px: ${text.textContent}`);
  }
  for (const button of all(".gw-run")) {
    const size = (Number.parseFloat(getComputedStyle(button).fontSize) * button.getBoundingClientRect().height) / button.offsetHeight;
    if (size < 8.95) found.push(`${size.toFixed(1)} px: ${button.textContent}`);
  }
  return found;
};
