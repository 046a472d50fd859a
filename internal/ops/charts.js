
// The charts of the last hour. The rest of the script is in page.js.
const svgNames = $('hour').namespaceURI;

// The charts show as much of the last hour as there is: after a start, a few points would be a hairline. They end with
// the last sample, which is of a moment ago: the clocks of two answers differ.
const rangeOf = ({ time }) => [time[time.length - 1], Math.min(3600, Math.max(1, time[time.length - 1] - time[0]))];

// Each chart has lines of one value per sample, stacked; null leaves a hole.
const lines = {
  lag: [['azure', h => h.azure_seconds], ['ours', h => h.bridge_seconds]],
  rate: [['rate', h => h.events_per_second]],
  marker: [['rate', h => h.resolved_seconds]],
};
function path(cls, d) {
  const p = document.createElementNS(svgNames, 'path');
  p.setAttribute('class', cls);
  p.setAttribute('d', d);
  return p;
}
function draw(id, what, h, text) {
  const svg = $(id + '-chart'), base = h.time.map(() => 0);
  const stacked = lines[id].map(([cls, of]) => [cls, of(h).map((v, i) => v == null ? null : base[i] += v), base.slice()]);
  const top = Math.max(1e-9, ...stacked.flatMap(([, values]) => values.filter(v => v != null)));
  const [end, wide] = rangeOf(h), x = i => (360 - 360 * (end - h.time[i]) / wide).toFixed(1), y = v => (98 - 78 * v / top).toFixed(1);
  const floor = h.time.map(() => 0), areas = [], over = [];
  for (const [cls, values] of stacked) {
    let line = '', area = '';
    for (let i = 0; i < values.length;) {
      if (values[i] == null) { i++; continue; }
      let j = i;
      while (j < values.length && values[j] != null && (j === i || h.time[j] - h.time[j - 1] < 3 * h.interval_seconds)) j++;
      const part = [];
      for (let k = i; k < j; k++) part.push(x(k) + ' ' + y(values[k]));
      if (j - i === 1) part.unshift((Number(x(i)) - 8) + ' ' + y(values[i])); // a single sample is a dash
      line += 'M' + part.join('L');
      const below = [];
      for (let k = j - 1; k >= i; k--) below.push(x(k) + ' ' + y(floor[k]));
      if (j - i > 1) area += 'M' + part.concat(below).join('L') + 'Z';
      i = j;
    }
    values.forEach((v, i) => { if (v != null) floor[i] = v; });
    areas.push(path('area ' + cls, area));
    over.unshift(path('line ' + cls, line)); // the lowest on top: where the next adds nothing, the two are one
  }
  svg.replaceChildren(...areas, ...over);
  const known = stacked.some(([, values]) => values.some(v => v != null));
  show(id + '-top', known && top > 1e-9 ? text(top) : '');
  svg.setAttribute('aria-label', what + ' in the last hour: ' + (known ? 'highest ' + text(top) : 'nothing known yet'));
}
function drawVerdicts(h) {
  const [end, wide] = rangeOf(h), rects = [], taken = {};
  h.verdict.forEach((v, i) => { // of the time since the sample before
    const to = h.time[i], since = i && to - h.time[i - 1] < 3 * h.interval_seconds ? h.time[i - 1] : to - (i ? h.interval_seconds : 0);
    taken[v] = (taken[v] || 0) + to - since;
    const x = 360 - 360 * (end - since) / wide, right = 360 - 360 * (end - to) / wide, last = rects[rects.length - 1];
    if (last && last.v === v && x - last.end < 1) last.end = right;
    else rects.push({ v, x, end: right });
  });
  $('hour').replaceChildren(...rects.map(({ v, x, end }) => {
    const r = document.createElementNS(svgNames, 'rect');
    r.setAttribute('class', v);
    r.setAttribute('x', x);
    r.setAttribute('width', Math.max(0, end - x));
    r.setAttribute('height', 1);
    return r;
  }));
  $('hour').dataset.samples = h.verdict.length;
  const parts = Object.entries(taken).map(([v, n]) => v.replaceAll('_', ' ') + ' ' + span(n));
  $('hour').setAttribute('aria-label', 'Verdicts of the last hour: ' + (parts.join(', ') || 'none yet'));
}
let hour = null;
function drawHour() {
  if (!hour || !now) return;
  draw('lag', 'Lag', hour, span);
  draw('rate', 'Throughput', hour, v => speed(v) + ' events/s');
  draw('marker', 'Age of the resolved time', hour, span);
  drawVerdicts(hour);
  for (const e of document.querySelectorAll('.since')) e.textContent = age < 3600 ? `start, ${span(age)} ago` : '1 hour ago';
}
