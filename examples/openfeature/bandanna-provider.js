// A provider for OpenFeature's web SDK: flags are Bandanna's experiments, and tracking sends rewards.
//
//   import { OpenFeature } from "@openfeature/web-sdk";
//   await OpenFeature.setContext({ targetingKey: "visitor-17" });
//   await OpenFeature.setProviderAndWait(new BandannaWebProvider("https://decide.example", "bdn_..."));
//   const client = OpenFeature.getClient();
//   const colour = client.getStringValue("button", "green");
//   client.track("reward", { value: 1, flag: "button" });
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";

export class BandannaWebProvider extends OFREPWebProvider {
  #url;
  #headers;
  #kinds;
  #shown = new Map();

  // rewards, losses: names of the tracking events whose values are rewards, and losses.
  // Other options are those of OFREPWebProvider, such as pollInterval.
  constructor(url, key, { rewards = ["reward"], losses = ["loss"], ...options } = {}) {
    const authorization = ["Authorization", `Bearer ${key}`];
    super({ ...options, baseUrl: url, headers: [authorization] });
    this.#url = url;
    this.#headers = Object.fromEntries([authorization]);
    this.#kinds = new Map([...rewards.map((name) => [name, "reward"]), ...losses.map((name) => [name, "loss"])]);
    this.hooks = [{ after: (asked, details) => this.#show(asked.flagKey, details.flagMetadata) }];
  }

  // A flag that a page reads is shown: its decision counts from now on.
  #show(flag, { experiment, event_id } = {}) {
    if (event_id && this.#shown.get(flag)?.event_id !== event_id) {
      this.#shown.set(flag, { experiment, event_id });
      this.#send(flag, "activate");
    }
  }

  // The feedback of the flag that the details name; without one, of every flag that was read.
  track(name, context, details = {}) {
    const kind = this.#kinds.get(name);
    if (kind === undefined) return;
    for (const flag of details.flag === undefined ? this.#shown.keys() : [details.flag]) {
      this.#send(flag, "reward", { [kind]: details.value });
    }
  }

  // Nothing is raised in the page; what was refused is logged, the feedback itself never is.
  async #send(flag, verb, body) {
    const { experiment, event_id } = this.#shown.get(flag) ?? {};
    if (!event_id) return console.warn(`bandanna: the flag ${flag} was not read.`);
    const path = `/v1/experiments/${experiment}/events/${encodeURIComponent(event_id)}/${verb}`;
    const headers = { ...this.#headers, "Content-Type": "application/json" };
    const sent = { method: "POST", headers, body: JSON.stringify(body ?? {}), keepalive: true };
    try {
      const answer = await fetch(new URL(path, this.#url), sent);
      if (!answer.ok) console.warn(`bandanna: ${verb} of ${flag} was answered ${answer.status}.`);
    } catch {
      console.warn(`bandanna: ${verb} of ${flag} could not be sent.`);
    }
  }
}
