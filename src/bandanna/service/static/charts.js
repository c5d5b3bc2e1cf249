// Two charts as plain SVG: shares over time, and means with intervals.
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

// As wide as its place, so that letters keep their size on a phone.
const room = (place) => Math.max(280, place.clientWidth);
const colour = (k) => `colour${k % 5}`;
const dash = (k) => DASHES[Math.floor(k / 5 + k) % 5];

export function sharesChart(place, points, names) {
  const width = room(place), height = 200, left = 40, bottom = 20;
  const last = points.at(-1)?.shares ?? [];
  const said = names.map((name, k) => `${name} ${Math.round(100 * (last[k] ?? 0))}%`).join(", ");
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
  if (points.length) {
    svg.append(draw("text", { x: left, y: height - 4 }, points[0].at.slice(0, 16).replace("T", " ")));
    svg.append(draw("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, points.at(-1).at.slice(0, 16).replace("T", " ")));
  }
  const legend = document.createElement("ul");
  legend.className = "legend";
  names.forEach((name, k) => {
    const item = document.createElement("li");
    const key = picture(26, 12, "");
    key.setAttribute("aria-hidden", "true");
    key.append(draw("line", { x1: 0, x2: 26, y1: 6, y2: 6, class: `line ${colour(k)}`, "stroke-dasharray": dash(k) }));
    item.append(key, ` ${name}`);
    legend.append(item);
  });
  place.replaceChildren(svg, legend);
}

export function meansChart(place, choices, range) {
  const [low, high] = range, width = room(place), row = 34, left = 110;
  const height = row * choices.length + 24;
  const said = choices.map((c) => `${c.name}: ${c.mean === null ? "nothing yet" : c.mean.toFixed(2)}`);
  const svg = picture(width, height, `Mean loss with 95% intervals. ${said.join(", ")}`);
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - 20);
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(draw("line", { x1: x(value), x2: x(value), y1: 0, y2: height - 20, class: "axis" }));
    svg.append(draw("text", { x: x(value), y: height - 4, "text-anchor": "middle" }, String(value)));
  }
  choices.forEach((choice, k) => {
    const y = row * k + row / 2;
    svg.append(draw("text", { x: 0, y: y + 4 }, String(choice.name).slice(0, 14)));
    if (choice.mean === null) {
      svg.append(draw("text", { x: left + 4, y: y + 4 }, "nothing released yet"));
      return;
    }
    svg.append(draw("line", { x1: x(choice.low), x2: x(choice.high), y1: y, y2: y, class: `line ${colour(k)}` }));
    svg.append(draw("circle", { cx: x(choice.mean), cy: y, r: 5, class: colour(k) }));
  });
  place.replaceChildren(svg);
}
