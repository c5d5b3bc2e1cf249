// Which arm each unit gets: node assign.mjs KIND PAYLOAD COUNT [KEY] prints one digit a unit.
import { readFileSync, writeSync } from "node:fs";

const [kind, file, count, key] = process.argv.slice(2);
const text = readFileSync(file, "utf8");
const arms = (names) => new Map(names.map((name, index) => [name, index]));
const digits = new Uint8Array(Number(count));
const begun = performance.now();

if (kind === "growthbook") {
  const { GrowthBook } = await import("@growthbook/growthbook");
  const { features } = JSON.parse(text);
  const [[name, feature]] = Object.entries(features);
  const index = arms(feature.rules[0].variations);
  const sdk = new GrowthBook({ features });
  for (let k = 0; k < digits.length; k += 1) {
    sdk.setAttributes({ id: `u${k}` });
    digits[k] = 48 + index.get(sdk.getFeatureValue(name, null));
  }
} else if (kind === "flagd") {
  const { FlagdCore } = await import("@openfeature/flagd-core");
  const core = new FlagdCore();
  core.setConfigurations(text);
  const [[name, flag]] = Object.entries(JSON.parse(text).flags);
  const index = arms(Object.keys(flag.variants));
  for (let k = 0; k < digits.length; k += 1) {
    digits[k] = 48 + index.get(core.resolveStringEvaluation(name, "none", { targetingKey: `u${k}` }).value);
  }
} else {
  const { Shares } = await import("../../../clients/edge/bandanna-edge.js");
  const shares = await Shares.read(text, Buffer.from(key, "hex"));
  const index = arms(shares.arms);
  for (let k = 0; k < digits.length; k += 1) digits[k] = 48 + index.get(shares.assign(`u${k}`));
}
console.error(((1000 * digits.length) / (performance.now() - begun)).toFixed(0));
for (let at = 0; at < digits.length; ) at += writeSync(1, digits, at);
