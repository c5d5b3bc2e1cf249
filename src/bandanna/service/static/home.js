// The experiments there are, how they are found, and how one is made.
import { $, ask, element, guarded, isolated, json, number } from "/page/common.js";

function row(one, narrow) {
  const link = element("a", "", isolated(one.name));
  link.href = `#${encodeURIComponent(one.id)}`;
  const tags = one.tags.map((tag) => {
    const button = element("button", "", isolated(tag));
    button.type = "button";
    button.className = "tag";
    button.setAttribute("aria-label", `Show those tagged ${tag}`);
    button.onclick = () => narrow(tag);
    return button;
  });
  const state = one.shipped ? element("span", "shipped ", isolated(String(one.shipped.arm))) : one.stopped ? "ended" : "running";
  const cells = [element("span", "", link, " ", ...tags), isolated(one.owner), number(one.epsilon), number(one.decided), state];
  return element("tr", "", ...cells.map((cell) => element("td", "", cell)));
}

// Adds a page of experiments, the newest first, and a button for the next.
function add(found, answer) {
  const narrow = (tag) => { $("find").reset(); $("tag").value = tag; search(); };
  $("list").append(...found.map((one) => row(one, narrow)));
  const next = /<([^>]*)>/.exec(answer.headers.get("Link") ?? "");
  $("more").hidden = next === null;
  $("more").onclick = guarded(async () => {
    const further = await ask(next[1]);
    add(await further.json(), further);
  });
}

// Lists what is searched for; of two searches the one that was asked for last is shown.
let searches = 0;
export const search = guarded(async () => {
  const asked = new URLSearchParams({ newest: "true", limit: "100" });
  for (const name of ["search", "owner", "tag"]) if ($(name).value.trim()) asked.set(name, $(name).value.trim());
  if ($("state").value) asked.set($("state").value, "true");
  const mine = ++searches;
  const answer = await ask(`/v1/experiments?${asked}`);
  const found = await answer.json();
  if (mine !== searches) return;
  $("list").replaceChildren();
  add(found, answer);
  const narrowed = [...asked].length > 2;
  $("none").hidden = found.length > 0;
  $("none").textContent = narrowed ? "None is like that." : "There is none yet.";
});

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);

// What the plan and the experiment are both told: how many rounds, how private, how late, whose.
function asked() {
  const found = { rounds: Number($("rounds").value), epsilon: Number($("epsilon").value) };
  if ($("deadline").value) found.deadline_seconds = Number($("deadline").value);
  if ($("deadline").value && $("often").value) found.decisions_per_second = Number($("often").value);
  if ($("per_person").value) {
    found.per_person = Number($("per_person").value);
    if ($("people").value) found.people = Number($("people").value);
    if ($("delta").value) found.delta = Number($("delta").value);
  }
  return found;
}

// Offers the arms as controls, only where they have changed: the list may be open.
function offer(arms) {
  const place = $("control"), chosen = place.value;
  if ([...place.options].slice(1).map(({ value }) => value).join("\n") === arms.join("\n") && place.options.length) return;
  place.replaceChildren(new Option("none", ""), ...arms.map((arm) => new Option(arm, arm)));
  if (arms.includes(chosen)) place.value = chosen;
}

export const planned = guarded(async () => {
  const arms = lines("arms");
  offer(arms);
  const problem = { ...asked(), arms: arms.length, local: $("privacy").value === "local" };
  if (problem.arms < 2 || !(problem.epsilon > 0) || !(problem.rounds >= 1)) {
    $("plan").textContent = "Give at least two arms, an epsilon and a number of decisions.";
    return;
  }
  if (lines("features").length) {
    $("plan").textContent = "It decides by context: no bound on regret is proved for a linear model of rewards.";
    return;
  }
  const found = await json("/v1/plan", problem);
  const each = lines("segments").length ? "In each segment:" : "";
  $("plan").textContent = [each, found.why, found.default, found.condition].filter(Boolean).join(" ");
});

const NUMBER = String.raw`([+-]?\d+(?:\.\d+)?)`;

// Metrics as they are written: "refunds 0 to 1, guardrail 0.05".
function metrics() {
  const found = {}, guardrails = {};
  for (const line of lines("further")) {
    const parts = new RegExp(`^(.+?)[:,]? +${NUMBER} +to +${NUMBER}(?:,? +guardrail +${NUMBER})?$`).exec(line);
    if (!parts) throw new Error(`The metric "${line}" should read like: refunds 0 to 1, guardrail 0.05`);
    found[parts[1]] = [Number(parts[2]), Number(parts[3])];
    if (parts[4] !== undefined) guardrails[parts[1]] = Number(parts[4]);
  }
  return [found, guardrails];
}

// Features as they are written: "age: 18 to 90" or "plan: bronze, silver, gold".
function features() {
  return Object.fromEntries(lines("features").map((line) => {
    const [, name, values] = /^([^:]+):\s*(.+)$/.exec(line) ?? [];
    if (!name) throw new Error(`The feature "${line}" should read like: age: 18 to 90, or plan: bronze, silver, gold`);
    const range = new RegExp(`^${NUMBER} +to +${NUMBER}$`).exec(values);
    return [name.trim(), range ? [Number(range[1]), Number(range[2])] : values.split(",").map((one) => one.trim())];
  }));
}

const make = guarded(async () => {
  const body = { ...asked(), name: $("name").value, arms: lines("arms"), privacy: $("privacy").value };
  for (const name of ["outcome", "owner", "hypothesis", "starts_on", "ends_on"]) if ($(`new_${name}`).value.trim()) body[name] = $(`new_${name}`).value.trim().replace(/\s+/g, " ");
  if ($("new_tags").value.trim()) body.tags = tagsOf($("new_tags").value);
  const range = [Number($("least").value), Number($("most").value)];
  if (range[0] !== 0 || range[1] !== 1) body.loss_range = range;
  if (lines("segments").length) body.segments = lines("segments");
  if ($("control").value) body.control = $("control").value;
  const [found, guardrails] = metrics();
  if (Object.keys(found).length) body.metrics = found;
  if (Object.keys(guardrails).length) body.guardrails = guardrails;
  if (lines("features").length) Object.assign(body, { features: features(), protects: $("protects").value });
  location.hash = encodeURIComponent((await json("/v1/experiments", body)).id);
});

export const tagsOf = (text) => text.split(",").map((tag) => tag.trim()).filter(Boolean);

$("make").addEventListener("submit", make);
for (const id of ["privacy", "arms", "epsilon", "rounds", "deadline", "often", "segments", "per_person", "people", "delta", "features"]) $(id).addEventListener("change", planned);
$("find").addEventListener("submit", search);
$("find").addEventListener("change", search);
$("all").addEventListener("click", () => { $("find").reset(); search(); });
