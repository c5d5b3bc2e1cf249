/** Throws unless two values are written the same as JSON; whole numbers of any size are text. */
export function same(found, expected, what) {
  const [one, other] = [found, expected].map((value) =>
    JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}` : part)),
  );
  if (one !== other) throw new Error(`${what}: found ${one}, expected ${other}`);
}
