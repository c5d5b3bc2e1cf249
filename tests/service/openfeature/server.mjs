// A program as others write it: flags of the service through OpenFeature's own server SDK.
// node server.mjs URL KEY FLAG, after npm ci; prints one JSON line.
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

const [url, key, flag] = process.argv.slice(2);

await OpenFeature.setProviderAndWait(new OFREPProvider({
  baseUrl: url,
  headers: [["Authorization", `Bearer ${key}`]],
}));
const client = OpenFeature.getClient();
const found = {
  first: await client.getStringDetails(flag, "default", { targetingKey: "user-1", event_id: "mine" }),
  again: await client.getStringDetails(flag, "default", { targetingKey: "user-1", event_id: "mine" }),
  unknown: await client.getStringDetails("none", "default", { targetingKey: "user-1" }),
  wrong: await client.getNumberDetails(flag, 7, { targetingKey: "user-1" }),
};
console.log(JSON.stringify(found));
await OpenFeature.close();
