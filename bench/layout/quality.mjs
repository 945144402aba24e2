// What a drawing looks like, in numbers: the same measure for every engine.

const NEAR = 45; // px around a shared end in which two edges of one node may touch

/**
 * crossings: pairs of edges that cross (not counted within 45 px of a node that both end at);
 * length: px, from border to border; through: pairs of an edge and a box, not its end, that it passes through;
 * overlaps: pairs of boxes.
 */
export function quality(graph, { position, lines }) {
  const segments = collectSegments(graph, position, lines);
  let length = 0;
  for (const s of segments) length += Math.hypot(s.bx - s.ax, s.by - s.ay);
  const box = bounds(graph, position);
  const boxes = boxStrips(graph, position, box);
  return {
    crossings: countCrossings(graph, position, segments, box),
    length: Math.round(length),
    through: countThrough(graph, position, segments, boxes),
    overlaps: countOverlaps(graph, position, boxes),
    width: Math.round(box.right - box.left),
    height: Math.round(box.bottom - box.top),
  };
}

function collectSegments(graph, position, lines) {
  const segments = [];
  graph.edges.forEach(([a, b], edge) => {
    const line = lines[edge]?.length > 1 ? lines[edge].slice() : [position[a], position[b]];
    // Some engines draw from centre to centre.
    line[0] = clip(line[0], line[1], position[a], graph.size[a]);
    const last = line.length - 1;
    line[last] = clip(line[last], line[last - 1], position[b], graph.size[b]);
    let [px, py] = line[0];
    for (let i = 1; i < line.length; i++) {
      const [qx, qy] = line[i];
      if (Math.abs(qx - px) + Math.abs(qy - py) < 1e-6) continue;
      segments.push({ ax: px, ay: py, bx: qx, by: qy, edge });
      [px, py] = [qx, qy];
    }
  });
  return segments;
}

function clip(end, next, centre, [w, h]) {
  if (Math.abs(end[0] - centre[0]) > 1 || Math.abs(end[1] - centre[1]) > 1) return end;
  const dx = next[0] - end[0];
  const dy = next[1] - end[1];
  const t = Math.min(1, w / 2 / Math.max(1e-9, Math.abs(dx)), h / 2 / Math.max(1e-9, Math.abs(dy)));
  return [end[0] + dx * t, end[1] + dy * t];
}

function bounds(graph, position) {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  position.forEach(([x, y], v) => {
    const [w, h] = graph.size[v];
    box.left = Math.min(box.left, x - w / 2);
    box.right = Math.max(box.right, x + w / 2);
    box.top = Math.min(box.top, y - h / 2);
    box.bottom = Math.max(box.bottom, y + h / 2);
  });
  return box;
}

const STRIP = 40;
const stripOf = (y, top) => Math.floor((y - top) / STRIP);

function countCrossings(graph, position, segments, box) {
  const strips = new Map();
  segments.forEach((s) => {
    for (let r = stripOf(Math.min(s.ay, s.by), box.top); r <= stripOf(Math.max(s.ay, s.by), box.top); r++) {
      if (!strips.has(r)) strips.set(r, []);
      strips.get(r).push(s);
    }
  });
  let crossings = 0;
  for (const [r, list] of strips) {
    list.sort((s, t) => Math.min(s.ax, s.bx) - Math.min(t.ax, t.bx));
    for (let i = 0; i < list.length; i++) {
      const s = list[i];
      const right = Math.max(s.ax, s.bx);
      for (let k = i + 1; k < list.length && Math.min(list[k].ax, list[k].bx) <= right; k++) {
        const at = crossing(s, list[k]);
        // Once per pair: in the strip that the point lies in.
        if (at && stripOf(at[1], box.top) === r && !nearSharedEnd(graph, position, s.edge, list[k].edge, at)) crossings++;
      }
    }
  }
  return crossings;
}

function crossing(s, t) {
  if (s.edge === t.edge) return null;
  const sx = s.bx - s.ax;
  const sy = s.by - s.ay;
  const tx = t.bx - t.ax;
  const ty = t.by - t.ay;
  const d = sx * ty - sy * tx;
  if (Math.abs(d) < 1e-9) return null;
  const u = ((t.ax - s.ax) * ty - (t.ay - s.ay) * tx) / d;
  const v = ((t.ax - s.ax) * sy - (t.ay - s.ay) * sx) / d;
  const inside = (x) => x > 1e-6 && x < 1 - 1e-6;
  return inside(u) && inside(v) ? [s.ax + u * sx, s.ay + u * sy] : null;
}

function nearSharedEnd(graph, position, e, f, [x, y]) {
  for (const a of graph.edges[e]) {
    if (graph.edges[f].includes(a) && Math.hypot(position[a][0] - x, position[a][1] - y) < NEAR) return true;
  }
  return false;
}

/** Boxes by strip, from left to right, with the widest of each. */
function boxStrips(graph, position, box) {
  const strips = new Map();
  position.forEach(([, y], v) => {
    const h = graph.size[v][1];
    for (let r = stripOf(y - h / 2, box.top); r <= stripOf(y + h / 2, box.top); r++) {
      if (!strips.has(r)) strips.set(r, { list: [], widest: 0 });
      const strip = strips.get(r);
      strip.list.push(v);
      strip.widest = Math.max(strip.widest, graph.size[v][0]);
    }
  });
  for (const { list } of strips.values()) list.sort((a, b) => position[a][0] - position[b][0]);
  return { strips, top: box.top };
}

function firstFrom(list, position, x) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (position[list[middle]][0] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

function countThrough(graph, position, segments, { strips, top }) {
  const hits = new Set();
  for (const s of segments) {
    const left = Math.min(s.ax, s.bx);
    const right = Math.max(s.ax, s.bx);
    for (let r = stripOf(Math.min(s.ay, s.by), top); r <= stripOf(Math.max(s.ay, s.by), top); r++) {
      const strip = strips.get(r);
      if (!strip) continue;
      // Only the part of the segment in this strip can meet its boxes.
      const reach = strip.widest / 2;
      for (let i = firstFrom(strip.list, position, left - reach); i < strip.list.length; i++) {
        const v = strip.list[i];
        if (position[v][0] > right + reach) break;
        if (graph.edges[s.edge].includes(v)) continue;
        if (cuts(s, position[v], graph.size[v])) hits.add(s.edge * graph.size.length + v);
      }
    }
  }
  return hits.size;
}

/** Whether a segment runs through the inside of a box (1 px of its border does not count). */
function cuts(s, [x, y], [w, h]) {
  let from = 0;
  let to = 1;
  const dx = s.bx - s.ax;
  const dy = s.by - s.ay;
  const limits = [
    [-dx, s.ax - (x - w / 2 + 1)],
    [dx, x + w / 2 - 1 - s.ax],
    [-dy, s.ay - (y - h / 2 + 1)],
    [dy, y + h / 2 - 1 - s.ay],
  ];
  for (const [p, q] of limits) {
    if (p === 0) {
      if (q < 0) return false;
    } else if (p < 0) from = Math.max(from, q / p);
    else to = Math.min(to, q / p);
  }
  return to - from > 1e-3;
}

function countOverlaps(graph, position, { strips }) {
  const pairs = new Set();
  for (const { list, widest } of strips.values()) {
    for (let i = 0; i < list.length; i++) {
      const a = list[i];
      for (let k = i + 1; k < list.length && position[list[k]][0] - position[a][0] < widest; k++) {
        const b = list[k];
        const dx = (graph.size[a][0] + graph.size[b][0]) / 2 - Math.abs(position[a][0] - position[b][0]);
        const dy = (graph.size[a][1] + graph.size[b][1]) / 2 - Math.abs(position[a][1] - position[b][1]);
        if (dx > 0.5 && dy > 0.1) pairs.add(Math.min(a, b) * graph.size.length + Math.max(a, b));
      }
    }
  }
  return pairs.size;
}
