// What the scorecard does not draw, as plain SVG: shares and intervals over time.
const SPACE = "http://www.w3.org/2000/svg";
const DASHES = ["", "8 3", "3 3", "10 3 2 3", "1 3"];

function draw(name, attributes, text) {
  const node = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function picture(width, height, label) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

// A name that anyone may have chosen: it cannot turn around what stands beside it.
const isolated = (name) => `\u2068${String(name).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")}\u2069`;

// As wide as its place, so that letters keep their size on a phone.
const room = (place) => Math.max(280, place.clientWidth);
const colour = (k) => `colour${k % 5}`;
const dash = (k) => DASHES[Math.floor(k / 5 + k) % 5];

const empty = (place) => place.replaceChildren(Object.assign(document.createElement("p"), { textContent: "Nothing has been released yet." }));

// Times of one day without the day; all are UTC, and say so.
function times(points) {
  const [first, last] = [points[0].at, points.at(-1).at];
  const from = first.slice(0, 10) === last.slice(0, 10) ? 11 : 0;
  return [first, last].map((at) => `${at.slice(from, from ? 19 : 16).replace("T", " ")} UTC`);
}

export function sharesChart(place, points, names) {
  if (!points.length) { empty(place); return; }
  const width = room(place), height = 200, left = 40, bottom = 20;
  const last = points.at(-1).shares;
  const said = names.map((name, k) => `${isolated(name)} ${Math.round(100 * last[k])}%`).join(", ");
  const svg = picture(width, height, `Shares of released rounds, latest: ${said}`);
  const y = (share) => 8 + (1 - share) * (height - bottom - 8);
  for (const share of [0, 0.5, 1]) {
    svg.append(draw("line", { x1: left, x2: width, y1: y(share), y2: y(share), class: "axis" }));
    svg.append(draw("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}%`));
  }
  const x = (i) => left + (points.length > 1 ? (i / (points.length - 1)) * (width - left - 4) : 0);
  names.forEach((_, k) => {
    const line = points.map((point, i) => `${x(i).toFixed(1)},${y(point.shares[k]).toFixed(1)}`);
    svg.append(draw("polyline", { points: line.join(" "), class: `line ${colour(k)}`, "stroke-dasharray": dash(k) }));
  });
  dates(svg, points, left, width, height);
  place.replaceChildren(svg, legendOf(names));
}

function dates(svg, points, left, width, height) {
  const [begin, end] = times(points);
  svg.append(draw("text", { x: left, y: height - 4 }, begin));
  if (points.length > 1) svg.append(draw("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, end));
}

function legendOf(names) {
  const legend = document.createElement("ul");
  legend.className = "legend";
  names.forEach((name, k) => {
    const item = document.createElement("li");
    const key = picture(26, 12, "");
    key.setAttribute("aria-hidden", "true");
    key.append(draw("line", { x1: 0, x2: 26, y1: 6, y2: 6, class: `line ${colour(k)}`, "stroke-dasharray": dash(k) }));
    const said = document.createElement("bdi");
    said.textContent = name;
    item.append(key, " ", said);
    legend.append(item);
  });
  return legend;
}

// Means as lines, and around each a band: where the mean lies, however often one looks.
export function intervalsChart(place, points, names, [low, high], label) {
  if (!points.length) { empty(place); return; }
  const width = room(place), height = 240, left = 44, bottom = 20;
  const short = (value) => String(Number(value.toPrecision(3)));
  const last = points.at(-1).means;
  const words = (one) => one === null ? "nothing released yet" : `${short(one[0])}, between ${short(one[1])} and ${short(one[2])}`;
  const said = names.map((name, k) => `${isolated(name)} ${words(last[k])}`).join("; ");
  const svg = picture(width, height, `${label} over time, latest: ${said}`);
  const y = (value) => 8 + (1 - (value - low) / (high - low)) * (height - bottom - 8);
  const x = (i) => left + (points.length > 1 ? (i / (points.length - 1)) * (width - left - 4) : (width - left) / 2);
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(draw("line", { x1: left, x2: width, y1: y(value), y2: y(value), class: "axis" }));
    svg.append(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  names.forEach((_, k) => {
    const known = points.flatMap(({ means }, i) => means[k] === null ? [] : [[i, ...means[k]]]);
    if (!known.length) return;
    if (known.length === 1) {
      const [i, mean, from, to] = known[0];
      svg.append(draw("line", { x1: x(i), x2: x(i), y1: y(from), y2: y(to), class: `line ${colour(k)}` }));
      svg.append(draw("circle", { cx: x(i), cy: y(mean), r: 4, class: colour(k) }));
      return;
    }
    const at = (which) => ([i, ...values]) => `${x(i).toFixed(1)},${y(values[which]).toFixed(1)}`;
    const band = [...known.map(at(2)), ...known.map(at(1)).reverse()];
    svg.append(draw("polygon", { points: band.join(" "), class: `band ${colour(k)}` }));
    svg.append(draw("polyline", { points: known.map(at(0)).join(" "), class: `line ${colour(k)}`, "stroke-dasharray": dash(k) }));
  });
  dates(svg, points, left, width, height);
  place.replaceChildren(svg, legendOf(names));
}
