/** The properties in Node: node --test test/device.test.js */

import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as module from "../bandanna-device.js";
import { properties } from "./properties.js";

const vectors = JSON.parse(readFileSync(new URL("../vectors.json", import.meta.url), "utf8"));

// The clocks of unsent bits would keep the program alive for a minute.
const { setTimeout } = globalThis;
globalThis.setTimeout = (...call) => setTimeout(...call).unref();

for (const [name, run] of Object.entries(properties)) {
  test(name, () => run({ module, vectors, crypto: webcrypto }));
}
