// The page: everything on it comes from the API, with the reader's key.
import { meansChart, sharesChart } from "/page/charts.js";

const $ = (id) => document.getElementById(id);
const number = (value) => Number(value).toLocaleString("en", { maximumSignificantDigits: 6 });
let watching = null;

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
  link.href = `#${one.id}`;
  link.textContent = one.name;
  const cells = [link, number(one.epsilon), number(one.decided), number(one.released), one.stopped ? "stopped" : "running"];
  for (const cell of cells) {
    const place = document.createElement("td");
    place.append(cell);
    line.append(place);
  }
  return line;
}

async function home() {
  const found = await json("/v1/experiments");
  $("list").replaceChildren(...found.reverse().map(row));
  $("none").hidden = found.length > 0;
  show("home");
  planned();
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
  location.hash = (await json("/v1/experiments", body)).id;
});

function fill(now, results) {
  $("title").textContent = now.name + (now.stopped ? " (stopped)" : "");
  $("stop").disabled = now.stopped;
  const bound = results.regret_bound;
  const places = results.places;
  const facts = {
    "Decisions": number(results.decided) + (now.segments ? ` of ${number(now.decided)}` : ""),
    "Batches released": number(results.batches_released),
    [places ? "Places in a batch" : "Decisions in a batch"]: number(results.batch),
    ...(places && { "Places used": `${number(places.used)}, at most ${number(places.most)} a person` }),
    "Regret at most, expected": bound === null || bound >= results.decided ? "says nothing yet" : number(Math.round(bound)),
    "Algorithm": now.algorithm,
  };
  $("condition").textContent = results.regret_condition;
  $("numbers").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => {
    const term = document.createElement("dt"), data = document.createElement("dd"), pair = document.createElement("div");
    term.textContent = name;
    data.textContent = value;
    pair.append(term, data);
    return [pair];
  }));
  sharesChart($("shares"), results.shares, results.choices.map((choice) => choice.name));
  $("means-title").textContent = `Mean loss with ${Math.round(100 * results.confidence)}% intervals, from released values`;
  meansChart($("means"), results.choices, now.settings.loss_range ?? [0, 1]);
  const p = results.steadiness.p_value;
  $("steady").textContent = results.steadiness.says + (p === null ? "" : ` (p = ${p.toPrecision(2)})`);
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

async function watch(id) {
  const stop = new AbortController();
  watching = stop;
  const answer = await ask(`/v1/experiments/${id}/live${which()}`, undefined, stop.signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", state = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
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

async function one(id) {
  const [now, privacy] = await Promise.all(["", "/privacy"].map((part) => json(`/v1/experiments/${id}${part}`)));
  offer(now.segments);
  const results = await json(`/v1/experiments/${id}/results${which()}`);
  $("promise").textContent = inWords(privacy, now.segments);
  $("full").textContent = `${privacy.in_words}\n\n${privacy.copies.not_known}`;
  $("device").hidden = privacy.device === null;
  $("device").textContent = privacy.device ? told(privacy.device) : "";
  $("certificate").disabled = privacy.ledger.resumed_from_older_copies > 0;
  show("one");
  fill(now, results);
  json(`/v1/experiments/${id}/audit`).then((found) => {
    const short = (value) => String(Number(value.toPrecision(3)));
    $("audit").textContent = `Claimed epsilon ${short(found.claimed)} for ${found.about}; an attack with ${number(found.draws)} draws shows at least ${short(found.audited)}. ${found.note}`;
  }, (error) => { $("audit").textContent = error.message; });
  watch(id).catch(() => {});
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const here = () => location.hash.slice(1);

const go = guarded(async () => {
  watching?.abort();
  if (!sessionStorage.getItem("key")) { show("enter"); return; }
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
