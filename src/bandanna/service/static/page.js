// The page: everything on it comes from the API, with the reader's key.
import { intervalsChart, sharesChart } from "/page/charts.js";
import { $, ask, element, guarded, isolated, json, number, say } from "/page/common.js";
import { planned, search, tagsOf } from "/page/home.js";

let watching = null;

// Writes a sentence of the service: names in it, which anyone may have chosen, cannot turn it around.
let named = [];
function write(place, text) {
  const escaped = named.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = escaped.length ? text.split(new RegExp(`(${escaped.join("|")})`)) : [text];
  place.replaceChildren(...parts.map((part) => named.includes(part) ? isolated(part) : part));
  return place;
}

function show(id) {
  for (const part of ["enter", "home", "one"]) $(part).hidden = part !== id;
  $("forget").hidden = id === "enter";
}

let mine = { scopes: [], experiment: null };
const may = (scope) => mine.scopes.includes(scope) || mine.scopes.includes("manage");

async function home() {
  $("making").hidden = !may("edit") || mine.experiment !== null;
  show("home");
  await search();
  if (!$("making").hidden) planned();
}

const ago = (at) => {
  const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  const [size, unit] = seconds < 90 ? [1, "second"] : seconds < 5400 ? [60, "minute"] : seconds < 129600 ? [3600, "hour"] : [86400, "day"];
  const count = Math.round(seconds / size);
  return `${number(count)} ${unit}${count === 1 ? "" : "s"} ago`;
};

// Feedback, open batches and the last release, with a word about what needs attention.
function healthy(now, { health }) {
  if (now.shipped) return ["It has ended: everyone gets the arm that was shipped.", false];
  if (now.stopped) return ["It was stopped: it decides nothing more.", false];
  if (!health.decided) return ["Nothing has been decided yet.", false];
  const share = health.observed / health.decided;
  const said = [`Feedback has come for ${Math.round(100 * share)}% of ${number(health.decided)} decisions.`];
  said.push(health.last_release_at ? `The last release was ${ago(health.last_release_at)}.` : "Nothing has been released yet.");
  const stale = health.oldest_open_at !== null && Date.now() - Date.parse(health.oldest_open_at) > 86400000;
  if (health.open_batches) said.push(`${number(health.open_batches)} open ${health.open_batches === 1 ? "batch waits" : "batches wait"}, the oldest begun ${ago(health.oldest_open_at)}.`);
  if (stale && !now.settings.deadline_seconds) said.push("It may wait for ever: experiments with deadline_seconds do not.");
  if (share < 0.2 && health.decided > 100) said.push("Little feedback comes: is it sent?");
  return [said.join(" "), stale || (share < 0.2 && health.decided > 100)];
}

function fill(now, results) {
  named = [...now.arms.map(String), ...results.choices.map(({ name }) => String(name)), ...(results.metrics ?? []).map(({ name }) => name)];
  named = [...new Set(named)].filter((name) => /\D/.test(name)).sort((a, b) => b.length - a.length);
  $("title").replaceChildren(isolated(now.name), now.shipped ? " (shipped)" : now.stopped ? " (stopped)" : "");
  $("stop").disabled = now.stopped;
  for (const id of ["stop", "ship", "describe"]) $(id).hidden = !may("edit");
  describe(now);
  if (released !== results.batches_released) guarded(() => decide(now, results))();
  const [health, attention] = healthy(now, results);
  $("health").textContent = health;
  $("health").classList.toggle("attention", attention);
  const bound = results.regret_bound;
  const places = results.places;
  const facts = {
    "Decisions": number(results.decided) + (now.segments ? ` of ${number(now.decided)}` : ""),
    "Batches released": number(results.batches_released),
    [places ? "Places in a batch" : "Decisions in a batch"]: number(results.batch),
    ...(places && { "Places used": `${number(places.used)}, at most ${number(places.most)} a person` }),
    "Regret at most, expected": bound === null || bound >= results.decided ? "says nothing yet" : number(Math.round(bound)),
    "Algorithm": now.algorithm,
    ...(results.control != null && { "Control": results.control }),
  };
  $("condition").textContent = results.regret_condition;
  departed(results.dropped ?? []);
  $("numbers").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => {
    const term = document.createElement("dt"), data = document.createElement("dd"), pair = document.createElement("div");
    term.textContent = name;
    data.append(isolated(String(value)));
    pair.append(term, data);
    return [pair];
  }));
  sharesChart($("shares"), results.shares, results.choices.map((choice) => choice.name));
  const counted = results.choices.filter(({ rounds }) => rounds).flatMap(({ name, rounds, share }, k) => [k ? ", " : "", isolated(String(name)), ` ${number(rounds)} (${Math.round(100 * share)}%)`]);
  $("counts").replaceChildren(...(counted.length ? ["Decisions whose feedback is released: ", ...counted, "."] : []));
  const mean = `Mean of ${results.answer.outcome} with ${Math.round(100 * results.confidence)}% intervals`;
  const range = now.settings.loss_range ?? [0, 1];
  $("intervals-title").textContent = `${mean}, over time`;
  intervalsChart($("intervals"), results.means ?? [], results.choices.map((choice) => choice.name), range, mean);
  const p = results.steadiness.p_value;
  write($("steady"), results.steadiness.says + (p === null ? "" : ` (p = ${p.toPrecision(2)})`));
}

const DESCRIBED = ["outcome", "owner", "hypothesis", "starts_on", "ends_on"];
let shown = null;

// What the team says of it, which arm it shipped and when.
function describe(now) {
  shown = now;
  const parts = [["owner: ", now.owner], ["starts on ", now.starts_on], ["ends on ", now.ends_on], ["tags: ", now.tags.join(", ")]];
  const said = parts.filter(([, text]) => text).map(([name, text]) => [name, isolated(text)]);
  $("shipment").replaceChildren(...(now.shipped ? [isolated(String(now.shipped.arm)), ` was shipped on ${now.shipped.at.slice(0, 10)} by the key ${now.shipped.by}: everyone gets it. What follows is what the experiment said.`] : []));
  $("ship").textContent = now.shipped ? "Ship another arm" : "Ship an arm";
  if (!now.stopped && now.ends_on && now.ends_on < new Date().toISOString().slice(0, 10)) said.push(["the day it was to end has passed"]);
  $("about").replaceChildren(...said.flatMap((part, k) => (k ? [" · ", ...part] : part)));
  $("hypothesis").replaceChildren(...(now.hypothesis ? ["Hypothesis: ", isolated(now.hypothesis)] : []));
}

async function history(id) {
  const found = [];
  for (let after = 0; after !== null;) {
    const page = await json(`/v1/experiments/${id}/trail?after=${after}`);
    found.push(...page.entries);
    after = page.next;
  }
  $("trail").replaceChildren(...found.map(({ at, who, name, action, details }) => {
    const told = Object.entries(details).filter(([what]) => what !== "name").map(([what, value]) => [`, ${what} `, isolated([value].flat().join(", "))]);
    return element("li", `${at.slice(0, 16).replace("T", " ")} UTC: `, action, ...told.flat(), ", by ", isolated(name === null ? who : `${name} (${who})`));
  }));
}

// Arms that a guardrail retired or that left the race, with the reason.
function departed(dropped) {
  $("left").hidden = dropped.length === 0;
  $("dropped").replaceChildren(...dropped.map(({ name, by, rounds, reason, log_evidence }) => {
    const odds = log_evidence > 13.8 ? "below one in a million" : `at most ${number(Number(Math.exp(-log_evidence).toPrecision(2)))}`;
    const why = reason || (by === null ? "no other arm can be better by more than the tolerance" : `${by} is better; the probability of such evidence by chance is ${odds}`);
    return element("li", "", element("b", "", isolated(String(name))), write(element("span", ""), `, after ${number(rounds)} decisions: ${why}.`));
  }));
}

function inWords({ guarantee: promise, about, copies }, segments) {
  const times = Math.exp(promise.epsilon);
  const most = times > 1000 ? "more than a thousand" : times.toPrecision(3);
  const person = about === "person";
  const whose = person ? "whatever one person says, in all their rounds together" : "whatever the feedback of any one round says";
  const where = person && segments ? " This is for whoever stays in one segment; to others the sum of their segments' is promised." : "";
  const times_resumed = copies.resumed === 1 ? "once" : `${number(copies.resumed)} times`;
  const charged = copies.resumed ? ` This includes that the database was resumed from an older copy ${times_resumed}.` : "";
  const but = promise.delta > 0 ? `, but for a probability of ${number(promise.delta)}` : "";
  return `Epsilon is ${number(promise.epsilon)}: ${whose}, nothing that leaves becomes more than ${most} times as likely${but}. It protects ${promise.protects}.${where}${charged}`;
}

function told({ public_key, history }) {
  const changes = history.map(({ fingerprint, key_id, since }) => `since ${since.slice(0, 10)} the parameters ${fingerprint.slice(0, 16)}, by the key ${key_id}`);
  return `Devices are told ${changes.join("; ")}. Pages pin the public key ${public_key}.`;
}

const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// Watches an experiment; where the connection is lost, it is tried again, ever more slowly.
async function watch(id) {
  const stop = new AbortController();
  watching = stop;
  let wait = 500;
  while (!stop.signal.aborted) {
    try {
      const answer = await ask(`/v1/experiments/${id}/live${which()}`, undefined, { signal: stop.signal });
      $("connection").textContent = "";
      wait = 500;
      await follow(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch (error) {
      if (stop.signal.aborted) return;
      if ([401, 403, 404].includes(error.status)) throw error;
    }
    if (stop.signal.aborted) return;
    $("connection").textContent = "The connection was lost; what is shown may be old. Trying again.";
    await pause(wait);
    wait = Math.min(2 * wait, 15000);
  }
}

async function follow(reader) {
  let text = "", state = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts.filter((one) => one.startsWith("data: "))) {
      state = { ...state, ...JSON.parse(part.slice(6)) }; // only what changed is sent
      fill(state.experiment, state.results);
    }
  }
}

// The segment that is looked at, as a query; empty where there are none.
const which = () => ($("choose").hidden ? "" : `?segment=${encodeURIComponent($("segment").value)}`);

function offer(segments) {
  const names = Object.keys(segments ?? {}), chosen = $("segment").value;
  $("choose").hidden = names.length === 0;
  $("segment").replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) $("segment").value = chosen;
}

// The scorecard: drawn by the service, and asked for again once something was released.
let released = null;
async function decide(now, results) {
  const id = here(), asked = new URLSearchParams(which());
  released = results.batches_released;
  if (now.settings.features) {
    $("card").replaceChildren(write(element("h3", ""), [results.answer.sentence, results.answer.warning].filter(Boolean).join(" ")));
    return;
  }
  if ($("with").value) asked.set("control", $("with").value);
  const { html, scorecard } = await json(`/v1/experiments/${id}/scorecard?${asked}`);
  if (id !== here()) return;
  $("card").innerHTML = html; // every text in it is escaped
  for (const place of $("card").querySelectorAll("h1, h2, p:not(:has(*))")) write(place, place.textContent);
  $("charts").hidden = scorecard.moments.length > 0; // it has drawn them
  recommended = scorecard.recommendation.arm ?? results.answer.best;
  offerArms(results.choices.map(({ name }) => String(name)), String(scorecard.control));
}

let recommended = null;
function offerArms(names, control) {
  $("against").hidden = names.length < 3;
  if ([...$("with").options].map(({ value }) => value).join("\n") !== names.join("\n")) $("with").replaceChildren(...names.map((name) => new Option(name, name)));
  if (!$("with").matches(":focus") || !$("with").value) $("with").value = control;
}

let opened = null;
async function one(id) {
  const [now, privacy] = await Promise.all(["", "/privacy"].map((part) => json(`/v1/experiments/${id}${part}`)));
  offer(now.segments);
  const results = await json(`/v1/experiments/${id}/results${which()}`);
  $("promise").textContent = inWords(privacy, now.segments);
  $("full").textContent = `${privacy.in_words}\n\n${privacy.copies.not_known}`;
  $("device").hidden = privacy.device === null;
  $("device").textContent = privacy.device ? told(privacy.device) : "";
  $("certificate").disabled = privacy.certificate === null && !which();
  if (opened !== id) { $("with").replaceChildren(); $("charts").hidden = false; }
  opened = id;
  released = null;
  show("one");
  fill(now, results);
  json(`/v1/experiments/${id}/audit`).then((found) => {
    const short = (value) => String(Number(value.toPrecision(3)));
    $("audit").textContent = `Claimed epsilon ${short(found.claimed)} for ${found.about}; an attack with ${number(found.draws)} draws shows at least ${short(found.audited)}. ${found.note}`;
  }, (error) => { $("audit").textContent = error.message; });
  guarded(() => history(id))();
  guarded(() => watch(id))();
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// The id of the experiment that is shown: whatever stands there, it is one part of a path.
const here = () => {
  let found = location.hash.slice(1);
  try { found = decodeURIComponent(found); } catch { /* as it stands */ }
  return /^\.{1,2}$/.test(found) ? "" : encodeURIComponent(found);
};

const go = guarded(async () => {
  watching?.abort();
  if (!sessionStorage.getItem("key")) {
    try { mine = await json("/v1/keys/me"); } catch { show("enter"); return; }
  }
  mine = await json("/v1/keys/me");
  await (here() ? one(here()) : home());
});

addEventListener("locked", () => { show("enter"); $("key").focus(); });
addEventListener("hashchange", () => { go(); $("main").focus(); });
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", $("key").value.trim());
  $("key").value = "";
  go();
});
$("forget").addEventListener("click", () => { sessionStorage.removeItem("key"); go(); });
$("segment").addEventListener("change", go);
$("with").addEventListener("change", go);
$("certificate").addEventListener("click", guarded(async () => {
  const found = await json(`/v1/experiments/${here()}/privacy${which()}`);
  save(`${here()}-certificate.json`, new Blob([JSON.stringify(found.certificate, null, 2)]));
}));
$("export").addEventListener("click", guarded(async () => {
  save(`${here()}.csv`, await (await ask(`/v1/experiments/${here()}/export?format=csv`)).blob());
}));
$("stop").addEventListener("click", () => $("sure").showModal());
$("sure").addEventListener("close", guarded(async () => {
  if ($("sure").returnValue !== "yes") return;
  await json(`/v1/experiments/${here()}/stop`, {});
  await go();
}));
$("ship").addEventListener("click", () => {
  $("shipped").replaceChildren(...shown.arms.map((arm) => new Option(arm, arm)));
  if (recommended !== null) $("shipped").value = String(recommended);
  $("shipping").showModal();
});
$("shipping").addEventListener("close", guarded(async () => {
  if ($("shipping").returnValue !== "yes") return;
  await json(`/v1/experiments/${here()}/ship`, { arm: $("shipped").value });
  await go();
}));
$("describe").addEventListener("click", () => {
  for (const name of DESCRIBED) $(`edit_${name}`).value = shown[name];
  $("edit_tags").value = shown.tags.join(", ");
  $("describing").showModal();
});
$("describing").addEventListener("close", guarded(async () => {
  if ($("describing").returnValue !== "yes") return;
  const said = Object.fromEntries(DESCRIBED.map((name) => [name, $(`edit_${name}`).value.trim().replace(/\s+/g, " ")]));
  await json(`/v1/experiments/${here()}`, { ...said, tags: tagsOf($("edit_tags").value) }, "PATCH");
  await go();
}));
go();
