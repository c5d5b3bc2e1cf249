/**
 * Decide by published shares: a page of code, for Node 20, edge workers and browsers.
 *
 *     const shares = await Shares.read(text, publicKey);   // of what an experiment in phases publishes
 *     const arm = shares.assign("user 17", (exposure) => queue.push(exposure));
 *
 * Who has what was published and the public key (32 bytes) can decide; nobody is asked. An exposure is
 * reported where the arm is shown, and goes into the table that the experiment counts.
 */

const PARTS = 10000;
const utf8 = new TextEncoder();

export class Shares {
  constructor(said, mark) {
    Object.assign(this, said, { mark, reported: new Set() });
  }

  /** Read what was published. With `before`, this must be the next of its chain. */
  static async read(text, publicKey, before) {
    const { payload, signature } = JSON.parse(text);
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    const mark = Uint8Array.from(atob(signature), (letter) => letter.charCodeAt(0));
    if (!(await crypto.subtle.verify("Ed25519", key, mark, utf8.encode(payload)))) {
      throw new Error("these shares are not by the owner of this key, or were changed");
    }
    const said = JSON.parse(payload);
    if (said.format !== "bandanna phase" || said.version !== 1) {
      throw new Error("these are no shares of a version that is known here");
    }
    if (said.parts.reduce((sum, part) => sum + part, 0) !== PARTS) throw new Error("shares must add up");
    if (before && said.previous !== before.mark) {
      throw new Error("these shares do not follow those before: others were told others");
    }
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", utf8.encode(text)));
    return new Shares(said, Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join(""));
  }

  /** Return a line for the service's feedback: what came of a unit that met its arm. */
  outcome(unit, value) {
    return { unit, value, experiment: this.key };
  }

  /** Return the arm of a unit; reports its first exposure in this phase. */
  assign(unit, report) {
    let bucket = Math.floor((sha256(`${this.salt}:${unit}`) * PARTS) / 2 ** 32);
    let arm = 0;
    while ((bucket -= this.parts[arm]) >= 0) arm += 1;
    if (report && !this.reported.has(unit)) {
      this.reported.add(unit);
      report({ unit, arm: this.arms[arm], time: new Date().toISOString(), experiment: this.key });
    }
    return this.arms[arm];
  }
}

const root = (number, power) => {
  const value = number ** (1 / power);
  return Math.floor((value - Math.floor(value)) * 2 ** 32);
};
const primes = [];
for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
const START = primes.slice(0, 8).map((prime) => root(prime, 2));
const ROUND = Int32Array.from(primes, (prime) => root(prime, 3));
const turn = (word, by) => (word >>> by) | (word << (32 - by));
const words = new Int32Array(64);

/** Return the first 32 bits of SHA-256 of a text: crypto.subtle would have to be awaited. */
function sha256(text) {
  const bytes = utf8.encode(text);
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  const state = Int32Array.from(START);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i += 1) words[i] = view.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const a = words[i - 15];
      const b = words[i - 2];
      const first = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      words[i] = (words[i - 16] + first + words[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10))) | 0;
    }
    let a = state[0], b = state[1], c = state[2], d = state[3];
    let e = state[4], f = state[5], g = state[6], h = state[7];
    for (let i = 0; i < 64; i += 1) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + words[i]) | 0;
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
  return state[0] >>> 0;
}
