/**
 * What the module must do, in any place that runs it: Node and browsers call the same functions.
 * Each takes { module, vectors, crypto } and throws when something is wrong.
 */

import { deviceProperties } from "./device-properties.js";
import { same } from "./same.js";

function codeOf(work) {
  try {
    work();
  } catch (error) {
    return error.code ?? String(error);
  }
  return null;
}

/** Words that are known beforehand in place of random ones. */
function given(words) {
  let used = 0;
  return {
    used: () => used,
    getRandomValues(wanted) {
      for (let place = 0; place < wanted.length; place += 1) wanted[place] = words[used + place];
      used += wanted.length;
      if (used > words.length) throw new Error("more words were asked for than there are");
      return wanted;
    },
  };
}

/** A number from 0 to 1 that does not change from run to run (Numerical Recipes' generator). */
function repeatable(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export const properties = {
  "bits from known words": ({ module, vectors }) => {
    for (const { release, units, words, bit, used } of vectors.draws) {
      const source = given(words);
      const drawn = module.drawBit(module.checkRelease(release, 100), BigInt(units), source);
      same([drawn, source.used()], [bit, used], `draw at epsilon ${release.epsilon}`);
    }
  },

  "parameters accepted and refused": ({ module, vectors }) => {
    for (const { release, allowed, refused } of vectors.checks) {
      const code = codeOf(() => module.checkRelease(release, allowed));
      same(code, refused, `${JSON.stringify(release)} where ${allowed} is allowed`);
    }
  },

  "losses on the grid": ({ module, vectors }) => {
    for (const { release, losses, units } of vectors.losses) {
      const parameters = module.checkRelease(release, 1);
      const found = losses.map((loss) => module.toUnits(parameters, loss));
      same(found, units, `losses from ${release.loss_low}`);
      for (const wrong of [NaN, Infinity, "0.2", null, undefined, true, 8e12, -8e12]) {
        same(codeOf(() => module.toUnits(parameters, wrong)), "loss", "a loss that is none");
      }
    }
  },

  "signatures and fingerprints": async ({ module, vectors, crypto }) => {
    const keys = [vectors.public_key];
    for (const { experiment, release, document, signature } of vectors.signed) {
      const bytes = module.canonicalDocument(experiment, release);
      same(new TextDecoder().decode(bytes), document, "document");
      const verify = (what) => module.verifySignature(what, signature, keys, crypto);
      same(await verify(bytes), true, "a good signature");
      same(await verify(module.canonicalDocument("x", release)), false, "of another experiment");
      const sharper = module.canonicalDocument(experiment, { ...release, a: "1" });
      same(await verify(sharper), false, "of other parameters");
    }
  },

  "the bound of exp is below and tight": ({ module }) => {
    const random = repeatable(3);
    for (let run = 0; run < 300; run += 1) {
      const x = 1e-9 * 1e11 ** random();
      const [total, bits] = module.expFloor(x);
      // Beyond 53 bits only the series itself can tell; the vectors have its edges.
      const found = Number((total << 60n) >> bits) / 2 ** 60;
      if (Math.abs(found / Math.exp(x) - 1) > 1e-13) throw new Error(`exp(${x}) is not ${found}`);
    }
  },

  "the sharpest integers are accepted, sharper ones are not": ({ module }) => {
    const random = repeatable(4);
    for (let run = 0; run < 300; run += 1) {
      const epsilon = 1e-9 * 1e11 ** random();
      const units = 1n << BigInt(Math.floor(33 * random()));
      const b = 1n << BigInt(60 + Math.floor(100 * random()));
      const [total, bits] = module.expFloor(epsilon);
      const growth = total - (1n << bits);
      const a = ((b * units) << bits) / growth + 1n;
      const release = (numerator) => ({
        epsilon: String(epsilon),
        loss_low: "0",
        loss_high: "1",
        default_loss: "0",
        a: String(numerator),
        b: String(b),
        denominator: String(2n * numerator + b * units),
        units: String(units),
        batch: "1",
      });
      same(codeOf(() => module.checkRelease(release(a), epsilon)), null, `epsilon ${epsilon}`);
      if (a < 3n) continue;
      const sharper = codeOf(() => module.checkRelease(release(a - 2n), epsilon));
      same(sharper, "epsilon", `sharper than epsilon ${epsilon}`);
    }
  },

  "every number below D is as likely as any other": ({ module, vectors }) => {
    // D is 3: of the words 0 to 3 the last is thrown away, and 1 + S of the others give a 1.
    const parameters = module.checkRelease(vectors.draws[0].release, 1);
    for (const units of [0n, 1n]) {
      const bits = [0, 1, 2].map((word) => module.drawBit(parameters, units, given([3, word])));
      same(bits.reduce((sum, bit) => sum + bit), 1 + Number(units), "ones");
    }
  },

  ...deviceProperties,
};
