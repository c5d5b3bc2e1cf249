// The page: everything on it comes from the API, with the reader's key.
import { intervalsChart, meansChart, sharesChart } from "/page/charts.js";

const $ = (id) => document.getElementById(id);
const number = (value) => Number(value).toLocaleString("en", { maximumSignificantDigits: 6 });
let watching = null;

// Writes a sentence of the service: names in it, which anyone may have chosen, cannot turn it around.
let named = [];
function write(place, text) {
  const escaped = named.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = escaped.length ? text.split(new RegExp(`(${escaped.join("|")})`)) : [text];
  place.replaceChildren(...parts.map((part) => named.includes(part) ? isolated(part) : part));
  return place;
}

function isolated(text) {
  const made = document.createElement("bdi");
  made.textContent = text;
  return made;
}

function say(text) { $("message").textContent = text; }

function show(id) {
  for (const part of ["enter", "home", "one"]) $(part).hidden = part !== id;
  $("forget").hidden = id === "enter";
}

async function ask(path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("key") ?? ""}` };
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  let detail = `The service answered ${answer.status}.`;
  try { detail = (await answer.json()).detail ?? detail; } catch { /* not a document */ }
  const error = new Error(detail);
  error.status = answer.status;
  throw error;
}

async function json(path, body) {
  const answer = await ask(path, body);
  return answer.status === 204 ? null : answer.json();
}

function guarded(work) {
  return async (event) => {
    event?.preventDefault?.();
    try {
      say("");
      await work(event);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) {
        sessionStorage.removeItem("key");
        show("enter");
        $("key").focus();
      }
      say(error.message);
    }
  };
}

function row(one) {
  const line = document.createElement("tr");
  const link = document.createElement("a");
  link.href = `#${encodeURIComponent(one.id)}`;
  link.append(isolated(one.name));
  const cells = [link, number(one.epsilon), number(one.decided), number(one.released), one.stopped ? "stopped" : "running"];
  for (const cell of cells) {
    const place = document.createElement("td");
    place.append(cell);
    line.append(place);
  }
  return line;
}

let mine = { scopes: [], experiment: null };
const may = (scope) => mine.scopes.includes(scope) || mine.scopes.includes("manage");

// A page of experiments, the newest first; returns where the next page is.
async function list(path) {
  const answer = await ask(path);
  const found = await answer.json();
  $("list").append(...found.map(row));
  const next = /<([^>]*)>/.exec(answer.headers.get("Link") ?? "");
  $("more").hidden = next === null;
  $("more").onclick = guarded(() => list(next[1]));
  return found.length;
}

async function home() {
  $("list").replaceChildren();
  $("none").hidden = (await list("/v1/experiments?newest=true&limit=100")) > 0;
  $("making").hidden = !may("manage") || mine.experiment !== null;
  show("home");
  if (!$("making").hidden) planned();
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);

// What the plan and the experiment are both told: how many rounds, how private, how late.
function asked() {
  const found = { rounds: Number($("rounds").value), epsilon: Number($("epsilon").value) };
  if ($("deadline").value) found.deadline_seconds = Number($("deadline").value);
  if ($("deadline").value && $("often").value) found.decisions_per_second = Number($("often").value);
  return found;
}

const planned = guarded(async () => {
  const problem = { ...asked(), arms: lines("arms").length, local: $("privacy").value === "local" };
  if (problem.arms < 2 || !(problem.epsilon > 0) || !(problem.rounds >= 1)) {
    $("plan").textContent = "Give at least two arms, an epsilon and a number of decisions.";
    return;
  }
  const found = await json("/v1/plan", problem);
  const each = lines("segments").length ? "In each segment:" : "";
  $("plan").textContent = [each, found.why, found.default, found.condition].filter(Boolean).join(" ");
});

const make = guarded(async () => {
  const body = { ...asked(), name: $("name").value, arms: lines("arms") };
  body.privacy = $("privacy").value;
  if (lines("segments").length) body.segments = lines("segments");
  location.hash = encodeURIComponent((await json("/v1/experiments", body)).id);
});

const ago = (at) => {
  const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  const [size, unit] = seconds < 90 ? [1, "second"] : seconds < 5400 ? [60, "minute"] : seconds < 129600 ? [3600, "hour"] : [86400, "day"];
  const count = Math.round(seconds / size);
  return `${number(count)} ${unit}${count === 1 ? "" : "s"} ago`;
};

// Feedback, open batches and the last release, with a word about what needs attention.
function healthy(now, { health }) {
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
  $("title").replaceChildren(isolated(now.name), now.stopped ? " (stopped)" : "");
  $("stop").disabled = now.stopped;
  $("stop").hidden = !may("manage");
  write($("answer"), [results.answer.sentence, results.answer.warning].filter(Boolean).join(" "));
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
  outcomes(results.metrics ?? [], results.control, results.confidence);
  departed(results.dropped ?? []);
  $("numbers").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => {
    const term = document.createElement("dt"), data = document.createElement("dd"), pair = document.createElement("div");
    term.textContent = name;
    data.append(isolated(String(value)));
    pair.append(term, data);
    return [pair];
  }));
  sharesChart($("shares"), results.shares, results.choices.map((choice) => choice.name));
  const mean = `Mean ${results.answer.outcome} with ${Math.round(100 * results.confidence)}% intervals`;
  const range = now.settings.loss_range ?? [0, 1];
  $("means-title").textContent = `${mean}, from released values`;
  meansChart($("means"), results.choices, range, mean);
  $("intervals-title").textContent = `${mean}, over time`;
  intervalsChart($("intervals"), results.means ?? [], results.choices.map((choice) => choice.name), range, mean);
  const p = results.steadiness.p_value;
  write($("steady"), results.steadiness.says + (p === null ? "" : ` (p = ${p.toPrecision(2)})`));
}

function element(name, text, ...inside) {
  const made = document.createElement(name);
  made.append(...(text ? [text] : []), ...inside);
  return made;
}

// Further outcomes, each with its guardrail, its sentence and its means.
function outcomes(metrics, control, confidence) {
  $("outcomes").hidden = metrics.length === 0;
  const charts = [];
  $("metrics").replaceChildren(...metrics.map(({ name, range, guardrail, answer }) => {
    const mean = `Mean ${name} with ${Math.round(100 * confidence)}% intervals`;
    const limit = guardrail === null ? "No guardrail." : `Guardrail: an arm is retired if its mean is ${guardrail > 0 ? "above" : "below"} that of ${control} by more than ${number(Math.abs(guardrail))}.`;
    const place = document.createElement("div");
    charts.push(() => meansChart(place, answer.arms, range, mean));
    return element("div", "", write(element("h4", ""), mean), write(element("p", ""), answer.sentence), write(element("p", ""), limit), place);
  }));
  for (const chart of charts) chart(); // once they are in the page, and have a width
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
      const answer = await ask(`/v1/experiments/${id}/live${which()}`, undefined, stop.signal);
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

// Two arms to compare, at first the first two; experiments that decide by context have no such answer.
function offerArms(names, contextual) {
  $("comparing").hidden = contextual || names.length < 2;
  for (const [place, id] of ["first", "second"].entries()) {
    const chosen = $(id).value;
    $(id).replaceChildren(...names.map((name) => new Option(name, name)));
    $(id).value = names.includes(chosen) ? chosen : names[place];
  }
}

async function compare() {
  const [first, second] = ["first", "second"].map((id) => $(id).value);
  $("difference").textContent = "";
  if ($("comparing").hidden || first === second) return;
  const asked = new URLSearchParams({ first, second });
  const found = await json(`/v1/experiments/${here()}/compare?${asked}${which().replace("?", "&")}`);
  write($("difference"), found.sentence);
}

async function one(id) {
  const [now, privacy] = await Promise.all(["", "/privacy"].map((part) => json(`/v1/experiments/${id}${part}`)));
  offer(now.segments);
  const results = await json(`/v1/experiments/${id}/results${which()}`);
  $("promise").textContent = inWords(privacy, now.segments);
  $("full").textContent = `${privacy.in_words}\n\n${privacy.copies.not_known}`;
  $("device").hidden = privacy.device === null;
  $("device").textContent = privacy.device ? told(privacy.device) : "";
  $("certificate").disabled = privacy.certificate === null && !which();
  show("one");
  fill(now, results);
  offerArms(results.choices.map((choice) => String(choice.name)), Boolean(now.settings.features));
  compare().catch((error) => { $("difference").textContent = error.message; });
  json(`/v1/experiments/${id}/audit`).then((found) => {
    const short = (value) => String(Number(value.toPrecision(3)));
    $("audit").textContent = `Claimed epsilon ${short(found.claimed)} for ${found.about}; an attack with ${number(found.draws)} draws shows at least ${short(found.audited)}. ${found.note}`;
  }, (error) => { $("audit").textContent = error.message; });
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
  const found = location.hash.slice(1);
  try { return /^[A-Za-z0-9_.-]{1,100}$/.test(decodeURIComponent(found)) ? decodeURIComponent(found) : encodeURIComponent(found); } catch { return encodeURIComponent(found); }
};

const go = guarded(async () => {
  watching?.abort();
  if (!sessionStorage.getItem("key")) { show("enter"); return; }
  mine = await json("/v1/keys/me");
  await (here() ? one(here()) : home());
});

addEventListener("hashchange", () => { go(); $("main").focus(); });
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", $("key").value.trim());
  $("key").value = "";
  go();
});
$("forget").addEventListener("click", () => { sessionStorage.removeItem("key"); go(); });
$("make").addEventListener("submit", make);
for (const id of ["privacy", "arms", "epsilon", "rounds", "deadline", "often", "segments"]) $(id).addEventListener("change", planned);
$("segment").addEventListener("change", go);
for (const id of ["first", "second"]) $(id).addEventListener("change", guarded(compare));
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
go();
