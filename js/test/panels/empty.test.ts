// @vitest-environment happy-dom
/** An empty canvas says what is true of what was computed. */
import { expect, test } from "vitest";
import { call, type Story } from "../../dev/fake_story.ts";
import { STORIES } from "../../dev/stories.ts";
import { show } from "../view/support.ts";

const empty = (more: Partial<Story>): Story => ({ ...STORIES.empty!(), ...more });
const event = (held: number) => ({
  id: 0,
  kind: "cell",
  cell: 1,
  call: null,
  iteration: null,
  label: "In[1]",
  ok: true,
  held,
  kept: true,
});
const finding = {
  kind: "no_grad",
  severity: "info",
  kicker: "No gradient",
  headline: "`loss` ran under torch.no_grad().",
  text: "",
  node: "",
  uid: null,
  carriers: [],
  path: [],
  uids: [],
  bytes: 0,
  fixes: [],
};

test.each([
  ["nothing has been computed", {}, ["No autograd graph yet", "outside of torch.no_grad()"]],
  ["cells ran and held nothing", { events: [event(0)] }, ["No autograd graph yet", "requires_grad=True"]],
  ["a graph was there and is gone", { events: [event(12)] }, ["No autograd graph now", "Nothing keeps one any more"]],
  ["a call ran on one", { calls: [call(0, { roots: ["loss"] })] }, ["No autograd graph now"]],
  ["a finding knows why", { events: [event(0)], findings: [finding] }, ["loss ran under torch.no_grad()."]],
])("when %s", async (_, more, words) => {
  const view = await show(empty(more as Partial<Story>));
  const said = view.one(".gw-empty").textContent;
  for (const each of words) expect(said).toContain(each);
  if (words[0] !== "No autograd graph yet") expect(said).not.toContain("yet");
  view.close();
});

test("where no byte was ever held, the line of bytes has one label", async () => {
  const view = await show(empty({ events: [event(0)] }));
  const labels = view.all(".gw-track text").map((text) => text.textContent);
  expect(labels).toContain("0 B");
  expect(labels.filter((label) => /\d k?B/.test(label ?? ""))).toEqual(["0 B"]);
  view.close();
});
