// What is wrong in a view, as a list of sentences: what covers what, what is out of sight, too small to read, or cut
// without a tooltip, and numbers that do not fit their ring. `root`: the element of the view.
(root) => {
  // In px: lines nearer than the first over more than the second run into one; a line is looked at in steps.
  const NEAR = 4;
  const LONG = 24;
  const STEP = 3;
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

  // Of a picture that nobody has moved all cards, flags, carriers and what calls did are in sight.
  const main = "[data-uid]:not([data-node=AccumulateGrad]), [data-role=root], [data-role=line], [data-carrier=true]";
  const whole = [...root.querySelectorAll(".gw-tree .gw-item")].filter((item) => item.matches(main));
  for (const item of whole) {
    const area = box(item);
    const isIn =
      area.x > view.x - 2 && area.x + area.w < view.x + view.w + 2 && area.y > view.y - 2 && area.y + area.h < view.y + view.h + 2;
    if (area.w && !isIn) found.push(`out of sight: ${keyOf(item)} ${item.textContent.slice(0, 40)}`);
  }

  for (const number of root.querySelectorAll("text.g-callno")) {
    const ring = number.previousElementSibling;
    const [inner, outer] = [box(number), box(ring)];
    if (inner.w && (inner.x < outer.x - 0.5 || inner.x + inner.w > outer.x + outer.w + 0.5))
      found.push(`call ${number.textContent} is wider than its ring`);
  }

  // Lines of different wires, or of two roots in one wire, run apart; no line runs through a card.
  const lines = [];
  for (const item of root.querySelectorAll(".gw-tree [data-key^='w']"))
    for (const path of item.querySelectorAll("path.g-wire")) {
      const length = path.getTotalLength();
      const matrix = path.getScreenCTM();
      const points = [];
      for (let at = 0; at <= length; at += STEP / scale) {
        const point = path.getPointAtLength(at).matrixTransform(matrix);
        points.push([point.x, point.y]);
      }
      lines.push({ key: item.dataset.key, hue: path.getAttribute("class"), points });
    }
  const near = ([ax, ay], [bx, by]) => Math.hypot(ax - bx, ay - by) < NEAR * scale;
  for (const [a, b] of pairs(lines)) {
    const shared = a.points.filter((p) => b.points.some((q) => near(p, q))).length;
    if (shared * STEP > LONG) found.push(`lines run into one: ${a.key} (${a.hue}) and ${b.key} (${b.hue}) over ${shared * STEP} px`);
  }
  const cards = [...root.querySelectorAll(".gw-tree .g-node")].map((node) => ({ key: keyOf(node), ...box(node) }));
  for (const line of lines)
    for (const card of cards) {
      const inside = line.points.filter(
        ([x, y]) => x > card.x + 2 && x < card.x + card.w - 2 && y > card.y + 2 && y < card.y + card.h - 2,
      ).length;
      if (inside * STEP > 6) found.push(`a line through a card: ${line.key} through ${card.key} over ${inside * STEP} px`);
    }

  const frame = box(root);
  for (const text of root.querySelectorAll(".gw-foot text"))
    if (box(text).w && box(text).x + box(text).w > frame.x + frame.w - 1) found.push(`beyond the edge: ${text.textContent}`);

  for (const tool of root.querySelectorAll(".gw-head > *"))
    if (box(tool).w && box(tool).x + box(tool).w > frame.x + frame.w - 1)
      found.push(`beyond the edge: ${tool.getAttribute("aria-label") ?? tool.textContent}`);

  const hasTooltip = (element) => {
    for (let at = element; at && at !== root.parentElement; at = at.parentElement)
      if (at.getAttribute("title") || [...at.children].some((child) => child.tagName === "title" && child.textContent))
        return true;
    return false;
  };
  for (const text of root.querySelectorAll("svg text"))
    if (/^…|…$|\S…\S/.test(text.textContent) && box(text).w && !hasTooltip(text)) found.push(`cut without a tooltip: ${text.textContent}`);
  for (const element of root.querySelectorAll(".gw-head *, .gw-panel *, .gw-foot *, .gw-stagebar *")) {
    if (!(element instanceof HTMLElement) || !element.clientWidth || element.closest(".gw-aside")) continue;
    const { overflowX, visibility } = getComputedStyle(element);
    const isCut = element.scrollWidth > element.clientWidth + 1 && overflowX !== "visible" && overflowX !== "auto" && overflowX !== "scroll";
    if (isCut && visibility === "visible" && element.innerText?.trim() && !hasTooltip(element) && !/gw-(track|panel|head|foot)\b/.test(element.className))
      found.push(`cut without a tooltip: ${element.innerText.trim().slice(0, 60)}`);
  }
  const written = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  for (const element of root.querySelectorAll(".gw-head *, .gw-panel *, .gw-foot *")) {
    if (!written(element) || !box(element).w) continue;
    const size = Number.parseFloat(getComputedStyle(element).fontSize);
    if (size < 9.95) found.push(`${size} px: ${element.textContent.slice(0, 40)}`);
  }
  return found;
};
