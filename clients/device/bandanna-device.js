/*
 * One random bit for each event leaves the device. Feedback becomes a whole number S from 0 to M;
 * the bit is 1 with probability (a + b S) / D. That keeps epsilon if (a + b M) / a <= exp(epsilon).
 */

const NUMBERS = ["epsilon", "loss_low", "loss_high", "default_loss"];
const INTEGERS = ["a", "b", "denominator", "units", "batch"];
const NUMBER = /^-?\d{1,20}(\.\d{1,30})?(e[-+]?\d{1,3})?$/;
const INTEGER = /^[1-9]\d{0,99}$/;
const NAME = /^[\w.-]{1,100}$/;
const FINAL = [200, 204, 404, 409, 410, 422];
const DAY = 86_400_000;

/** It could cost the person more than was agreed. */
export class RefusalError extends Error {
	constructor(code, message) {
		super(message);
		this.code = code;
	}
}

function demand(holds, code, message) {
	if (!holds) throw new RefusalError(code, message);
}

/** [t, n] with t / 2**n <= exp(x): all terms are positive and rounded down. */
export function expFloor(x) {
	const up = BigInt(x * 2 ** 200); // exact: x is at least 1e-9
	const bits = BigInt(256 + Math.max(0, 200 - up.toString(2).length));
	let term = 1n << bits;
	let total = term;
	for (let k = 1n; term > 0n; k += 1n) {
		term = (term * up) / (k << 200n);
		total += term;
	}
	return [total, bits];
}

/** Read a release; prove that it costs at most `allowed`. */
export function checkRelease(release, allowed) {
	const need = (holds, message) => demand(holds, "parameters", message);
	const read = (fields, form, make) =>
		fields.map((field) => {
			const text = release?.[field];
			need(typeof text === "string" && form.test(text), `${field} is no number`);
			return make(text);
		});
	const [epsilon, low, high, normal] = read(NUMBERS, NUMBER, Number);
	const [a, b, denominator, units, batch] = read(INTEGERS, INTEGER, BigInt);
	need(batch === 1n, "only a batch of 1 is local");
	need(units <= 1n << 32n, "units must be at most 2**32");
	need(denominator === 2n * a + b * units, "denominator must be 2 a + b units");
	need(low < high && high - low < Infinity, "the loss range is empty");
	need(low <= normal && normal <= high, "default_loss is out of range");
	need(epsilon >= 1e-9 && epsilon <= 100, "epsilon must be from 1e-9 to 100");
	demand(epsilon <= allowed, "epsilon", `epsilon ${epsilon} is above ${allowed}`);
	const [total, bits] = expFloor(epsilon);
	const keeps = (a + b * units) << bits <= a * total;
	demand(keeps, "epsilon", `the integers are sharper than epsilon ${epsilon}`);
	const length = (denominator - 1n).toString(2).length;
	return { epsilon, a, b, denominator, units, low, high, length };
}

/** A loss on the grid: a whole number from 0 to M. */
export function toUnits({ low, high, units }, loss) {
	const fits = typeof loss === "number" && loss >= low && loss <= high;
	demand(fits, "loss", `a loss is a number from ${low} to ${high}`);
	const most = Number(units);
	return BigInt(Math.min(most, Math.floor(((loss - low) / (high - low)) * most + 0.5)));
}

/** The bit, from a uniform number below D, by rejection. */
export function drawBit({ a, b, denominator, length }, units, crypto = globalThis.crypto) {
	const words = new Uint32Array(Math.ceil(length / 32));
	for (;;) {
		crypto.getRandomValues(words);
		let drawn = 0n;
		for (const word of words) drawn = (drawn << 32n) | BigInt(word);
		drawn = BigInt.asUintN(length, drawn);
		if (drawn < denominator) return drawn < a + b * units ? 1 : 0;
	}
}

/** The bytes that are signed: there is one way to write them. */
export function canonicalDocument(experiment, release) {
	demand(NAME.test(experiment), "parameters", "not an experiment's id");
	const lines = [...NUMBERS, ...INTEGERS].map((field) => `${field} ${release[field]}`);
	const all = ["bandanna device parameters 1", `experiment ${experiment}`, ...lines, ""];
	return new TextEncoder().encode(all.join("\n"));
}

/** Whether one of the pinned keys signed the document. */
export async function verifySignature(document, signature, keys, { subtle }) {
	const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
	for (const key of keys) {
		const pinned = await subtle.importKey("raw", bytes(key), "Ed25519", false, ["verify"]);
		if (await subtle.verify("Ed25519", pinned, bytes(signature), document)) return true;
	}
	return false;
}

/** Decisions for one person on this device, and the bits that answer them. */
export class Device {
	#options;
	#timer;

	constructor({
		storage = globalThis.localStorage,
		crypto = globalThis.crypto,
		fetch = globalThis.fetch.bind(globalThis),
		now = Date.now,
		delay = 60,
		...rest
	}) {
		const { epsilon, budget, publicKeys } = rest;
		const positive = [epsilon, budget?.epsilon, budget?.days, delay].every((value) => value > 0);
		const pinned = publicKeys === null || publicKeys?.length > 0;
		const fine = positive && pinned && delay <= 86400;
		demand(fine, "options", "epsilon, budget, publicKeys or delay is wrong");
		this.#options = { ...rest, storage, crypto, fetch, now, delay: delay * 1000 };
	}

	/** Ask for a decision. */
	async decide(event_id = this.#options.crypto.randomUUID()) {
		const { experiment, delay, now, budget, ...options } = this.#options;
		const response = await this.#post(`experiments/${experiment}/decisions`, { event_id });
		demand(response.ok, "service", `the service answered ${response.status}`);
		const { arm, expires_at, release, ...answer } = await response.json();
		demand(answer.event_id === event_id, "service", "an answer to another event");
		const { epsilon } = checkRelease(release, options.epsilon);
		const fingerprint = await this.#fingerprint(release, answer.signature);
		const same = (options.fingerprint ?? fingerprint) === fingerprint;
		demand(same, "fingerprint", `the parameters changed to ${fingerprint}`);
		const send_at = now() + delay;
		const expires = expires_at ? Date.parse(expires_at) : send_at + DAY;
		demand(expires > send_at, "service", "it expires too soon");
		await this.#change((state) => {
			if (state.events[event_id]) return;
			state.spent += Math.ceil(epsilon * 1e9); // whole billionths
			demand(state.spent <= budget.epsilon * 1e9, "budget", "the budget is spent");
			if (state.history.at(-1)?.fingerprint !== fingerprint) {
				state.history.push({ fingerprint, epsilon, seen: now() });
			}
			state.events[event_id] = { arm, send_at, forget_at: expires + DAY, release };
		});
		return { event_id, arm, fingerprint };
	}

	/** Draw the bit and keep it, not the loss. Only the first in time counts. */
	async feedback(event_id, loss) {
		return this.#change(({ events: { [event_id]: event } }, now) => {
			demand(event, "event", "no such event");
			if (event.done || event.bit !== undefined || now >= event.send_at) return false;
			event.bit = this.#draw(event.release, loss);
			return true;
		});
	}

	/** Send what is due, with or without feedback. */
	async flush() {
		const due = await this.#change(({ events }, now) =>
			Object.entries(events).filter(([, event]) => {
				if (event.done || event.send_at > now) return false;
				event.bit ??= this.#draw(event.release, Number(event.release.default_loss));
				event.send_at = now + this.#options.delay; // again, if no answer comes
				return true;
			}),
		);
		for (const [id, { bit, send_at, forget_at }] of due) {
			const answer = await this.#post(`events/${id}/bit`, { bit }).catch(() => null);
			if (FINAL.includes(answer?.status)) {
				await this.#change(({ events }) => (events[id] = { send_at, forget_at, done: true }));
			}
		}
	}

	/** When a page opens. */
	async resume() {
		await this.flush();
		return this.#change((state) => state);
	}

	async #fingerprint(release, signature) {
		const { experiment, publicKeys, crypto } = this.#options;
		const document = canonicalDocument(experiment, release);
		const signed =
			!publicKeys ||
			(await verifySignature(document, signature, publicKeys, crypto).catch(() => false));
		demand(signed, "signature", "no pinned key signed this, or Ed25519 is missing");
		const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", document));
		return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
	}

	#draw(release, loss) {
		const parameters = checkRelease(release, Infinity); // it was allowed, and charged
		return drawBit(parameters, toUnits(parameters, loss), this.#options.crypto);
	}

	#post(path, body) {
		const { url, key, fetch } = this.#options;
		const authorization = key && { Authorization: `Bearer ${key}` };
		return fetch(`${url}/v1/${path}`, {
			method: "POST",
			headers: { "Content-Type": "application/json", ...authorization },
			body: JSON.stringify(body),
			credentials: "omit",
			redirect: "error",
			referrerPolicy: "no-referrer",
		});
	}

	/** Change what is kept, one tab at a time, before anything leaves. */
	async #change(work) {
		const { url, experiment, storage, budget, now: clock } = this.#options;
		const name = `bandanna:${url}:${experiment}`;
		const run = () => {
			const now = clock();
			const period = Math.floor(now / (budget.days * DAY));
			const kept = JSON.parse(storage.getItem(name));
			const state = kept ?? { period, spent: 0, events: {}, history: [] };
			if (period > state.period) Object.assign(state, { period, spent: 0 });
			for (const id in state.events) if (state.events[id].forget_at < now) delete state.events[id];
			const result = work(state, now);
			const text = JSON.stringify(state);
			storage.setItem(name, text);
			demand(storage.getItem(name) === text, "storage", "the storage keeps nothing");
			this.#wake(Object.values(state.events), now);
			return result;
		};
		const locks = globalThis.navigator?.locks;
		return locks ? locks.request(name, run) : run();
	}

	/** Set the one clock, by sending times alone. */
	#wake(events, now) {
		clearTimeout(this.#timer);
		const next = Math.min(...events.map(({ done, send_at }) => (done ? Infinity : send_at)));
		const wait = Math.min(DAY, next - now + 50);
		if (next < Infinity) this.#timer = setTimeout(() => this.flush().catch(() => {}), wait);
	}
}
