const options = {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}};
const specs = {{ specs | safe }};
// On a narrow screen charts are drawn narrower, one below the other, instead of shrunk.
const room = document.body.clientWidth - 130;
function wrapped(text, width) {
  const lines = [""];
  for (const word of String(text || "").split(" ")) {
    if (lines.at(-1).length + word.length > width) lines.push("");
    lines.push((lines.pop() + " " + word).trim());
  }
  return lines;
}
function fit(spec) {
  if (room > 560) return spec;
  if (spec.hconcat) { spec.vconcat = spec.hconcat; delete spec.hconcat; }
  for (const part of [spec, spec.spec, ...(spec.vconcat || [])]) {
    if (part && part.width > room) part.width = room;
    if (part && part.encoding && part.encoding.facet) part.encoding.facet.columns = 1;
  }
  if (spec.title) {
    Object.assign(spec.title, {limit: room + 90, fontSize: 13, subtitleFontSize: 11});
    spec.title.subtitle = [spec.title.subtitle].flat().flatMap(line => wrapped(line, room / 6));
  }
  spec.config = spec.config || {};
  spec.config.legend = {...spec.config.legend, columns: 2};
  return spec;
}
window.charts = Promise.all(Object.entries(specs).map(([id, spec]) => vegaEmbed("#chart-" + id, fit(spec), options)));
