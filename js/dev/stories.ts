/** Recorded moments for the dev page and the tests. Names, slots and the engine's order are torch's own. */
import { call, type FakeNode, type Story } from "./fake_story.ts";

const held = (name: string, bytes: number) => ({ name, bytes, type: `float32[${bytes / 4}]` });
const freed = (name: string, bytes: number, freedBy: number) => ({ ...held(name, bytes), state: 1, freedBy });
const leaf = (uid: number, path: string, bytes: number, grad = false): FakeNode => ({
  uid,
  name: "AccumulateGrad",
  seq: -1,
  next: [],
  leaf: { path, type: `float32[${bytes / 4}]`, bytes, grad },
});

const event = (id: number, kind: string, cell: number, more: Record<string, unknown>) => ({
  id,
  kind,
  cell,
  call: null,
  iteration: null,
  label: "",
  ok: true,
  held: 0,
  nodes: 0,
  kept: false,
  ...more,
});

/** `y = t @ a` is made once; iteration 1 meets what iteration 0 freed. */
export function reused(): Story {
  const iteration = (k: number, first: number, seq: number, freedBy: number, ghost: boolean): FakeNode[] => [
    {
      uid: first,
      name: "MseLossBackward0",
      seq: seq + 2,
      next: [first + 1],
      ghost,
      place: [2, 3, "    loss = mse(x_out, x)", k],
      slots: [freed("self", 16, freedBy), freed("target", 16, freedBy)],
    },
    {
      uid: first + 1,
      name: "MvBackward0",
      seq: seq + 1,
      next: [first + 2],
      ghost,
      place: [2, 2, "    x_out = t @ (x + y)", k],
      slots: [freed("self", 32, freedBy), freed("vec", 16, freedBy)],
    },
    { uid: first + 2, name: "AddBackward0", seq, next: [4], ghost, place: [2, 2, "    x_out = t @ (x + y)", k] },
  ];
  return {
    nodes: [
      ...iteration(1, 8, 6, 1, false),
      ...iteration(0, 5, 3, 0, true),
      {
        uid: 4,
        name: "MvBackward0",
        seq: 1,
        next: [1, 2],
        place: [1, 6, "y = t @ a", null],
        slots: [freed("self", 32, 0), freed("vec", 16, 0)],
      },
      leaf(1, "t", 32, true),
      leaf(2, "a", 16, true),
    ],
    roots: [
      { id: 1, path: "loss", uid: 5, order: 0, alive: false },
      { id: 2, path: "loss", uid: 8, order: 1, cells: [1, 2] },
    ],
    owners: [
      ["y", 4, "variable"],
      ["x_out", 9, "variable"],
      ["loss", 8, "variable"],
    ],
    calls: [
      call(0, {
        cell: 2,
        line: 4,
        iteration: 0,
        source: "loss.backward()",
        roots: ["loss"],
        rootUids: [5],
        executed: [5, 6, 7, 4, 1, 2],
        executedCount: 6,
        freedSlots: 6,
        freedBytes: 128,
      }),
      call(1, {
        cell: 2,
        line: 4,
        iteration: 1,
        source: "loss.backward()",
        roots: ["loss"],
        rootUids: [8],
        executed: [8, 9, 10],
        executedCount: 3,
        freedSlots: 4,
        freedBytes: 80,
        result: "raised",
        failedUid: 4,
        freedBy: 0,
        carriers: ["y"],
        error: "Trying to backward through the graph a second time",
      }),
    ],
    events: [
      event(0, "cell", 1, { held: 48, nodes: 3, label: "after In[1]" }),
      event(1, "call", 2, { call: 0, iteration: 0, held: 0, nodes: 6, label: "loss.backward(), iteration 0" }),
      event(2, "call", 2, {
        call: 1,
        iteration: 1,
        held: 0,
        nodes: 6,
        ok: false,
        label: "loss.backward(), iteration 1",
      }),
      event(3, "cell", 2, { ok: false, nodes: 6, label: "In[2] raised", kept: true }),
    ],
    boundary: [[4, 10, "y"]],
    findings: [
      {
        kind: "second_backward",
        severity: "error",
        call: 1,
        node: "MvBackward0",
        uid: 4,
        carriers: ["y"],
        freedBy: 0,
        bytes: 0,
        kicker: "Second backward · In[2]:3 · iteration 1",
        headline: "call 2 needs saved tensors that call 1 freed.",
        text: "`y` is built once, in In[1]:6. In iteration 0, call 1 `loss.backward()` freed what its grad_fn had saved. Iteration 1 reaches the same node through `y`.",
        path: ["loss", "x_out", "y", "MvBackward0"],
        uids: [8, 9, 10, 4],
        fixes: [
          {
            id: "recompute_in_loop",
            text: "Compute `y` inside the loop",
            verified: true,
            note: "In[2]:1: Same gradients. A fresh node each iteration.",
            edit: ["+ y = t @ a", "  x_out = t @ (x + y)"],
            key: 7,
          },
          {
            id: "retain_graph_earlier_call",
            text: "Keep them: `retain_graph=True` in call 1",
            verified: true,
            note: "In[2]:4: 48 B stay until `del y`.",
            edit: ["- loss.backward()", "+ loss.backward(retain_graph=True)"],
          },
          {
            id: "detach",
            text: "Cut here: `x + y.detach()`",
            verified: true,
            note: "In[2]:2: Changes gradients: none reaches `a`.",
            edit: [],
          },
        ],
      },
    ],
    status: { text: "after In[2], which raised", state: "raised", cell: 2 },
  };
}

/** Two losses on one trunk, nothing run yet. */
export function trunk(): Story {
  return {
    nodes: [
      {
        uid: 20,
        name: "NllLossBackward0",
        seq: 7,
        next: [19],
        place: [4, 1, "loss1 = cross_entropy(cls(z), yc)", null],
        slots: [held("self", 1280), held("target", 256), held("total_weight", 4)],
      },
      {
        uid: 19,
        name: "LogSoftmaxBackward0",
        seq: 6,
        next: [18],
        place: [4, 1, "loss1 = cross_entropy(cls(z), yc)", null],
        slots: [held("result", 1280)],
      },
      {
        uid: 18,
        name: "AddmmBackward0",
        seq: 5,
        next: [5, 16, 6],
        place: [4, 1, "loss1 = cross_entropy(cls(z), yc)", null],
        module: ["cls", "Linear"],
        slots: [held("mat1", 16384), held("mat2", 5120)],
      },
      {
        uid: 22,
        name: "MseLossBackward0",
        seq: 9,
        next: [21],
        place: [4, 2, "loss2 = mse(reg(z), yr)", null],
        slots: [held("self", 128), held("target", 128)],
      },
      {
        uid: 21,
        name: "AddmmBackward0",
        seq: 8,
        next: [7, 16, 8],
        place: [4, 2, "loss2 = mse(reg(z), yr)", null],
        module: ["reg", "Linear"],
        slots: [held("mat1", 16384), held("mat2", 512)],
      },
      {
        uid: 16,
        name: "ReluBackward0",
        seq: 4,
        next: [15],
        place: [3, 1, "z = trunk(X)", null],
        module: ["trunk[3]", "ReLU"],
        slots: [held("result", 16384)],
      },
      {
        uid: 15,
        name: "AddmmBackward0",
        seq: 3,
        next: [3, 14, 4],
        place: [3, 1, "z = trunk(X)", null],
        module: ["trunk[2]", "Linear"],
        slots: [held("mat1", 16384), held("mat2", 65536)],
      },
      {
        uid: 14,
        name: "ReluBackward0",
        seq: 2,
        next: [13],
        place: [3, 1, "z = trunk(X)", null],
        module: ["trunk[1]", "ReLU"],
        slots: [held("result", 16384)],
      },
      {
        uid: 13,
        name: "AddmmBackward0",
        seq: 1,
        next: [1, 2],
        place: [3, 1, "z = trunk(X)", null],
        module: ["trunk[0]", "Linear"],
        slots: [held("mat1", 8192)],
      },
      leaf(1, "trunk[0].bias", 512),
      leaf(2, "trunk[0].weight", 16384),
      leaf(3, "trunk[2].bias", 512),
      leaf(4, "trunk[2].weight", 65536),
      leaf(5, "cls.bias", 40),
      leaf(6, "cls.weight", 5120),
      leaf(7, "reg.bias", 4),
      leaf(8, "reg.weight", 512),
    ],
    roots: [
      { id: 1, path: "loss1", uid: 20, order: 0, cells: [3, 4] },
      { id: 2, path: "loss2", uid: 22, order: 1, cells: [3, 4] },
    ],
    owners: [
      ["z", 16, "variable"],
      ["loss1", 20, "variable"],
      ["loss2", 22, "variable"],
    ],
    calls: [],
    events: [
      event(0, "cell", 1, { label: "after In[1]" }),
      event(1, "cell", 2, { label: "after In[2]" }),
      event(2, "cell", 3, { held: 123000, nodes: 4, label: "after In[3]" }),
      event(3, "cell", 4, { held: 148000, nodes: 9, label: "after In[4]", kept: true }),
    ],
    boundary: [],
    findings: [],
    status: { text: "after In[4]", state: "idle", cell: 4 },
  };
}

/** A graph as small as a lecture's first: one loss, three nodes. */
export function tiny(): Story {
  return {
    nodes: [
      { uid: 3, name: "MeanBackward0", seq: 2, next: [2], place: [1, 4, "loss = h.mean()", null] },
      {
        uid: 2,
        name: "ReluBackward0",
        seq: 1,
        next: [1],
        place: [1, 3, "h = (w * x).relu()", null],
        slots: [held("result", 24)],
      },
      {
        uid: 1,
        name: "MulBackward0",
        seq: 0,
        next: [4],
        place: [1, 3, "h = (w * x).relu()", null],
        slots: [held("other", 24), { name: "self", bytes: 0, state: 4 }],
      },
      leaf(4, "w", 24),
    ],
    roots: [{ id: 1, path: "loss", uid: 3, order: 0, cells: [1] }],
    owners: [
      ["h", 2, "variable"],
      ["loss", 3, "variable"],
    ],
    calls: [],
    events: [event(0, "cell", 1, { held: 48, nodes: 3, label: "after In[1]", kept: true })],
    boundary: [],
    findings: [],
    status: { text: "after In[1]", state: "idle", cell: 1 },
  };
}

/** `layers` blocks of four nodes: for folding, the minimap and the bitmap. */
export function deep(layers: number): Story {
  const nodes: FakeNode[] = [];
  const params: FakeNode[] = [];
  let uid = 1;
  let before = 0;
  for (let k = 0; k < layers; k++) {
    const weight = leaf(uid++, `net.layers[${k}].weight`, 4096);
    const first = uid;
    const place: FakeNode["place"] = [2, 3, "loss = net(x).sum()", null];
    params.push(weight);
    const module = [`net.layers[${k}]`, "Block"] as [string, string];
    nodes.push({
      uid: uid++,
      name: "AddmmBackward0",
      seq: 4 * k,
      next: before ? [weight.uid, before] : [weight.uid],
      place,
      module,
      slots: [held("mat1", 2048), held("mat2", 4096)],
    });
    nodes.push({
      uid: uid++,
      name: "TanhBackward0",
      seq: 4 * k + 1,
      next: [first],
      place,
      module,
      slots: [held("result", 2048)],
    });
    nodes.push({
      uid: uid++,
      name: "MulBackward0",
      seq: 4 * k + 2,
      next: [first + 1],
      place,
      module,
      slots: [held("other", 2048)],
    });
    nodes.push({
      uid: uid++,
      name: "AddBackward0",
      seq: 4 * k + 3,
      next: before ? [first + 2, before] : [first + 2],
      place,
      module,
    });
    before = first + 3;
  }
  nodes.push({
    uid,
    name: "SumBackward0",
    seq: 4 * layers,
    next: [before],
    place: [2, 3, "loss = net(x).sum()", null],
  });
  const story = tiny();
  return {
    ...story,
    nodes: [...nodes.reverse(), ...params],
    roots: [{ id: 1, path: "loss", uid, order: 0, cells: [2] }],
    owners: [["loss", uid, "variable"]],
  };
}

export const STORIES: Record<string, () => Story> = {
  reused,
  trunk,
  tiny,
  deep: () => deep(12),
  huge: () => deep(1000),
  empty: () => ({
    ...tiny(),
    nodes: [],
    roots: [],
    owners: [],
    events: [],
    status: { text: "after In[1]", state: "idle", cell: 1 },
  }),
};
