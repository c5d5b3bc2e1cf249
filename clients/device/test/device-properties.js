/** What a Device must do, with a service that lives in the same program. */

import { same } from "./same.js";

/** A storage and a clock that outlive a page, and a service that writes down what it is told. */
function world({ module, vectors, crypto }, changes = {}) {
  const signed = vectors.signed[0];
  const kept = new Map();
  let time = 1e12;
  let drawn = 0;
  const it = {
    requests: [],
    statuses: [], // what the service answers to the next bits; null loses the answer
    decision: {},
    draws: () => drawn,
    wait: (seconds) => (time += seconds * 1000),
    storage: {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, text) => kept.set(name, text),
    },
    bits: () => it.requests.filter(({ path }) => path.endsWith("/bit")).map(({ body }) => body.bit),
    async fetch(address, { body: text, ...request }) {
      const path = new URL(address).pathname;
      const body = JSON.parse(text);
      it.requests.push({ path, body, request, time });
      if (path.endsWith("/bit")) {
        const status = it.statuses.length ? it.statuses.shift() : 204;
        if (status === null) throw new TypeError("the connection was lost");
        return { ok: status < 300, status };
      }
      const { release, signature, key_id } = signed;
      const answer = { event_id: body.event_id, arm: "b", release, signature, key_id };
      const expires_at = new Date(time + 1e6).toISOString();
      const json = async () => ({ ...answer, expires_at, ...it.decision });
      return { ok: true, status: 200, json };
    },
    page: (more = {}) =>
      new module.Device({
        url: "https://service.example",
        experiment: signed.experiment,
        epsilon: 1,
        budget: { epsilon: 5, days: 30 },
        publicKeys: [vectors.public_key],
        storage: it.storage,
        fetch: it.fetch,
        now: () => time,
        delay: 60,
        crypto: {
          subtle: crypto.subtle,
          randomUUID: () => crypto.randomUUID(),
          getRandomValues: (words) => {
            drawn += 1;
            return crypto.getRandomValues(words);
          },
        },
        ...changes,
        ...more,
      }),
  };
  return it;
}

async function refusal(promise) {
  return promise.then(
    () => null,
    (error) => error.code ?? String(error),
  );
}

export const deviceProperties = {
  "feedback leaves as one bit, at the fixed time, and nothing else": async (place) => {
    const it = world(place);
    const page = it.page({ key: "secret" });
    const { event_id, arm } = await page.decide();
    same(arm, "b", "arm");
    same(await page.feedback(event_id, 0.25), true, "first feedback");
    same(await page.feedback(event_id, 1), false, "second feedback");
    await page.flush();
    same(it.bits(), [], "bits before the time");
    it.wait(60);
    await page.flush();
    await page.flush();
    const [decision, bit, ...rest] = it.requests;
    same(rest, [], "further requests");
    same([decision.path, decision.body], ["/v1/experiments/exp_1/decisions", { event_id }], "ask");
    same([bit.path, Object.keys(bit.body)], [`/v1/events/${event_id}/bit`, ["bit"]], "answer");
    for (const { request } of it.requests) {
      same(Object.keys(request.headers), ["Content-Type", "Authorization"], "headers");
      same([request.credentials, request.redirect], ["omit", "error"], "manners");
    }
  },

  "without feedback a bit is sent at the same time": async (place) => {
    const times = [];
    for (const answers of [true, false]) {
      const it = world(place);
      const page = it.page();
      const { event_id } = await page.decide();
      if (answers) await page.feedback(event_id, -1);
      it.wait(60);
      same(await page.feedback(event_id, 1), false, "feedback that comes too late");
      await page.flush();
      same(it.requests.length, 2, "requests");
      times.push(it.requests[1].time);
      same(await page.feedback(event_id, 1), false, "feedback after sending");
    }
    same(times[0], times[1], "time of sending");
  },

  "a retry after a lost answer sends the same bit": async (place) => {
    for (let run = 0; run < 20; run += 1) {
      const it = world(place);
      it.statuses = [null, 503, 429, 204];
      const page = it.page();
      const { event_id } = await page.decide();
      if (run % 2) await page.feedback(event_id, 0);
      it.wait(60);
      for (let round = 0; round < 6; round += 1) {
        await page.flush();
        await page.flush(); // too soon: sends nothing
        it.wait(60);
      }
      const [decided, ...sent] = it.requests.map(({ time }) => time);
      const waits = sent.map((time) => (time - decided) / 1000);
      same(waits, [60, 120, 180, 240], "times of sending");
      same(new Set(it.bits()).size, 1, "different bits");
    }
  },

  "a page that is closed and reopened does not draw twice": async (place) => {
    for (let run = 0; run < 20; run += 1) {
      const it = world(place);
      it.statuses = [null];
      const { event_id } = await it.page().decide();
      await it.page().feedback(event_id, 0);
      const drawn = it.draws();
      same(await it.page().feedback(event_id, 1), false, "feedback on another page");
      it.wait(60);
      await it.page().resume();
      it.wait(60);
      await it.page().resume();
      const { events } = await it.page().resume();
      same([it.bits().length, new Set(it.bits()).size], [2, 1], "sendings and different bits");
      same(it.draws(), drawn, "draws");
      same([events[event_id].done, "bit" in events[event_id]], [true, false], "what is kept");
    }
  },

  "two open pages send the same bits": async (place) => {
    const it = world(place, { budget: { epsilon: 100, days: 30 } });
    it.statuses = Array(40).fill(503);
    const pages = [it.page(), it.page()];
    for (let event = 0; event < 20; event += 1) await pages[event % 2].decide();
    for (let round = 0; round < 3; round += 1) {
      it.wait(60);
      await Promise.all(pages.map((page) => page.flush()));
    }
    const bits = {};
    for (const { path, body } of it.requests) (bits[path] ??= new Set()).add(body.bit);
    const sizes = Object.entries(bits).map(([path, seen]) => path.endsWith("/bit") && seen.size);
    same(sizes.filter(Boolean), Array(20).fill(1), "different bits of each event");
  },

  "a page that allows less later still sends what was agreed": async (place) => {
    const it = world(place);
    await it.page().decide();
    it.wait(60);
    await it.page({ epsilon: 0.1 }).flush();
    same(it.bits().length, 1, "bits");
  },

  "sharper, unsigned and changed parameters are refused, and nothing is sent": async (place) => {
    const { release, fingerprint } = place.vectors.signed[0];
    const other = place.vectors.signed[1];
    const a = BigInt(release.a) / 2n;
    const denominator = 2n * a + BigInt(release.b) * BigInt(release.units);
    const sharper = { ...release, a: String(a), denominator: String(denominator) };
    const cases = [
      [{ release: sharper }, {}, "epsilon"],
      [{ release: { ...sharper, epsilon: "3" } }, {}, "epsilon"],
      [{ release: { ...sharper, epsilon: "3" } }, { epsilon: 3 }, "signature"],
      [{ release: other.release }, {}, "signature"],
      [{ release: other.release, signature: other.signature }, {}, "signature"],
      [{ signature: null }, {}, "signature"],
      [{}, { epsilon: 0.99 }, "epsilon"],
      [{}, { fingerprint: "0".repeat(64) }, "fingerprint"],
      [{}, { publicKeys: [btoa("k".repeat(32))] }, "signature"],
      [{ event_id: "other" }, {}, "service"],
      [{ expires_at: "2001-01-01T00:00:00Z" }, {}, "service"],
      [{}, { fingerprint }, null],
      [{ signature: null }, { publicKeys: null }, null],
    ];
    for (const [decision, options, code] of cases) {
      const it = world(place, options);
      it.decision = decision;
      same(await refusal(it.page().decide()), code, JSON.stringify([decision, options]));
      it.wait(1000);
      await it.page().resume();
      same(it.bits().length, code ? 0 : 1, "bits");
    }
  },

  "a changed release is in the history": async (place) => {
    const it = world(place, { publicKeys: null });
    const page = it.page();
    await page.decide();
    await page.decide();
    it.decision = { release: { ...place.vectors.signed[0].release, loss_high: "2" } };
    await page.decide();
    const { history } = await page.resume();
    same(history.length, 2, "changes");
    same(history[0].fingerprint, place.vectors.signed[0].fingerprint, "fingerprint");
  },

  "the budget is for a period, is charged once an event, and survives the page": async (place) => {
    const it = world(place, { budget: { epsilon: 2, days: 30 } });
    const { event_id } = await it.page().decide();
    await it.page().decide(event_id);
    await it.page().decide();
    same(await refusal(it.page().decide()), "budget", "beyond the budget");
    same((await it.page().resume()).spent, 2e9, "spent");
    it.wait(-60 * 86400);
    same(await refusal(it.page().decide()), "budget", "with the clock set back");
    it.wait(120 * 86400);
    same(await refusal(it.page().decide()), null, "in the next period");
  },

  "without a storage that keeps it, no bit is drawn or sent": async (place) => {
    const full = () => {
      throw new Error("the quota is exceeded");
    };
    for (const setItem of [() => {}, full]) {
      const it = world(place, { storage: { getItem: () => null, setItem } });
      same((await refusal(it.page().decide())) !== null, true, "refused");
      same(it.bits(), [], "bits");
    }
  },

  "losses that are none are refused without being repeated": async (place) => {
    const it = world(place);
    const page = it.page();
    const { event_id } = await page.decide();
    const error = await page.feedback(event_id, 123456).catch((caught) => caught);
    same([error.code, error.message.includes("123456")], ["loss", false], "refusal");
    same(await refusal(page.feedback(event_id)), "loss", "no loss at all");
    same(await refusal(page.feedback("unknown", 0)), "event", "unknown event");
    same(await page.feedback(event_id, 0), true, "a good one afterwards");
  },

  "options that would weaken the promise by accident are refused": async (place) => {
    const wrong = [{ epsilon: 0 }, { epsilon: NaN }, { budget: undefined }, { publicKeys: [] }];
    for (const options of [...wrong, { publicKeys: undefined }, { delay: 0 }, { delay: 1e6 }]) {
      const made = refusal(Promise.resolve().then(() => world(place, options).page()));
      same(await made, "options", JSON.stringify(options));
    }
  },
};
