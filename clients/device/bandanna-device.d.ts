/** The public parameters of a release as they travel: every number is text. */
export interface Release {
  /** The most that one event costs. */
  epsilon: string;
  /** A loss outside this range is refused. */
  loss_low: string;
  loss_high: string;
  /** Randomised in place of feedback when none came in time. */
  default_loss: string;
  a: string;
  b: string;
  /** 2 a + b units. */
  denominator: string;
  /** Steps from the lowest to the highest loss, M. */
  units: string;
  batch: "1";
}

/** Parameters that were read and found to keep their epsilon. */
export interface Parameters {
  epsilon: number;
  a: bigint;
  b: bigint;
  denominator: bigint;
  units: bigint;
  low: number;
  high: number;
  /** Binary digits of denominator - 1. */
  length: number;
}

/** Why something was refused; the message never repeats a loss. */
export type RefusalCode =
  | "options"
  | "parameters"
  | "epsilon"
  | "signature"
  | "fingerprint"
  | "budget"
  | "storage"
  | "service"
  | "event"
  | "loss";

export class RefusalError extends Error {
  constructor(code: RefusalCode, message: string);
  readonly code: RefusalCode;
}

/** What `localStorage` has; `setItem` must have written when it returns. */
export interface KeyStorage {
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
}

export interface DeviceOptions {
  /** Where the service is, without `/v1`. */
  url: string;
  experiment: string;
  /** A key that may decide in this experiment, if the service wants one. */
  key?: string;
  /** The most that one event may cost. */
  epsilon: number;
  /** The most that all events of a period may cost together. */
  budget: { epsilon: number; days: number };
  /** Base64 of Ed25519 keys whose signature is trusted; null trusts the service. */
  publicKeys: string[] | null;
  /** Refuse any other parameters than those with this hash. */
  fingerprint?: string;
  /** Seconds from a decision to the sending of its bit: 60 if left out, a day at most. */
  delay?: number;
  storage?: KeyStorage;
  crypto?: Crypto;
  fetch?: typeof fetch;
  /** Milliseconds since 1970. */
  now?: () => number;
}

export interface DeviceDecision {
  event_id: string;
  arm: string | number;
  /** SHA-256 of the signed parameters: the same for everyone, or someone is treated apart. */
  fingerprint: string;
}

/** An event as it is kept; without `bit` before it is drawn and after it was sent. */
export interface KeptEvent {
  arm?: string | number;
  send_at: number;
  forget_at: number;
  release?: Release;
  bit?: 0 | 1;
  done?: true;
}

export interface Kept {
  period: number;
  /** In billionths of epsilon. */
  spent: number;
  events: Record<string, KeptEvent>;
  /** Every change of parameters that this device has seen. */
  history: { fingerprint: string; epsilon: number; seen: number }[];
}

export class Device {
  constructor(options: DeviceOptions);
  /** Ask for a decision; the same id gets the same answer and is charged once. */
  decide(event_id?: string): Promise<DeviceDecision>;
  /** Draw the bit and keep it, not the loss; false if it came second or too late. */
  feedback(event_id: string, loss: number): Promise<boolean>;
  /** Send what is due; a clock calls this by itself while the page is open. */
  flush(): Promise<void>;
  /** Call it when a page opens: sends what is due, sets clocks, returns all that is kept. */
  resume(): Promise<Kept>;
}

/** [t, n] with t / 2**n <= exp(x), for x from 1e-9 to 100. */
export function expFloor(x: number): [bigint, bigint];
export function checkRelease(release: unknown, allowed: number): Parameters;
export function toUnits(parameters: Parameters, loss: number): bigint;
export function drawBit(parameters: Parameters, units: bigint, crypto?: Crypto): 0 | 1;
export function canonicalDocument(experiment: string, release: Release): Uint8Array;
export function verifySignature(
  document: Uint8Array,
  signature: string,
  keys: string[],
  crypto: Crypto,
): Promise<boolean>;
