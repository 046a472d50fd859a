
// The feed as a ribbon: each segment a tile, from the oldest that the account still holds to the newest.
let feed = null, zoom = null; // zoom: [from, to) in Unix seconds; null: the whole feed
const day = 86400, month = 30 * day;
const segmentTime = s => s ? Date.UTC(+s.slice(0, 4), s.slice(5, 7) - 1, +s.slice(8, 10), +s.slice(11, 13), +s.slice(13, 15)) / 1000 : null;
const stamp = (t, unit) => new Date(t * 1000).toISOString().slice(0, unit === month ? 7 : unit === day ? 10 : 16).replace('T', ' ');
const fates = {
  delivered: 'delivered', current: 'being delivered', overdue: 'open for too long', waiting: 'waiting', omitted: 'before the start',
};

// fate says what became of a segment.
function fate(begin, p) {
  if (p.current && begin === segmentTime(p.current)) return p.open_since ? 'overdue' : 'current';
  const completed = segmentTime(p.completed), start = p.start ? Date.parse(p.start) / 1000 : null;
  if (completed != null && begin <= completed) return start != null && begin + 4500 < start ? 'omitted' : 'delivered';
  return 'waiting';
}
function rect(cls, x, width, title) {
  const r = document.createElementNS(svgNames, 'rect');
  r.setAttribute('class', cls);
  r.setAttribute('x', x);
  r.setAttribute('width', width);
  r.setAttribute('height', 40);
  if (title) {
    const t = document.createElementNS(svgNames, 'title');
    t.textContent = title;
    r.append(t);
  }
  return r;
}
function drawRibbon(s) {
  if (!feed) return;
  const p = s.position, all = feed.begins, begins = zoom ? all.filter(b => b >= zoom[0] && b < zoom[1]) : all;
  $('ribbon-section').hidden = !all.length;
  if (!all.length) return;
  const from = begins.length ? begins[0] : zoom[0], to = (begins.length ? begins[begins.length - 1] : zoom[1]) + 3600;
  const unit = begins.length <= 200 ? 0 : (to - from) / day <= 400 ? day : month;
  const tiles = new Map(); // in the order of the segments; where the feed has none, there is no tile
  for (const b of begins) {
    const at = unit === month ? Date.UTC(new Date(b * 1000).getUTCFullYear(), new Date(b * 1000).getUTCMonth(), 1) / 1000 : unit ? b - b % unit : b;
    if (!tiles.has(at)) tiles.set(at, {});
    const f = fate(b, p);
    tiles.get(at)[f] = (tiles.get(at)[f] || 0) + 1;
  }
  const width = 1000 / Math.max(1, tiles.size), gap = Math.min(2, width / 5), parts = [];
  let x = 0;
  for (const [at, counts] of tiles) {
    const n = Object.values(counts).reduce((a, b) => a + b), title = stamp(at, unit) + (unit ? ', ' + number(n) + ' segments' : '') + ': ' +
      Object.entries(counts).map(([f, c]) => (unit ? number(c) + ' ' : '') + fates[f]).join(', ');
    const one = counts.overdue ? 'overdue' : 'current', own = unit && counts[one] ? Math.min(3, width / 2) : 0; // else one segment of a month could not be seen
    let from = x;
    for (const f of ['omitted', 'delivered', 'current', 'overdue', 'waiting']) {
      if (!counts[f]) continue;
      const part = own && f === one ? own : (width - gap - own) * counts[f] / (n - (own && counts[one]));
      const r = rect('tile seg-' + f, from.toFixed(2), part.toFixed(2), title);
      if (unit) r.addEventListener('click', () => { zoom = [at, unit === month ? Date.UTC(new Date(at * 1000).getUTCFullYear(), new Date(at * 1000).getUTCMonth() + 1, 1) / 1000 : at + day]; drawRibbon(s); });
      parts.push(r);
      from += part;
    }
    x += width;
  }
  $('ribbon').replaceChildren(...parts);
  $('ribbon').setAttribute('class', unit ? 'zooms' : '');
  const counts = {};
  for (const b of begins) counts[fate(b, p)] = (counts[fate(b, p)] || 0) + 1;
  const what = Object.keys(fates).filter(f => counts[f]);
  $('ribbon').setAttribute('aria-label', `${number(begins.length)} segments from ${stamp(from, 0)} to ${stamp(to - 3600, 0)}: ` + what.map(f => number(counts[f]) + ' ' + fates[f]).join(', '));
  show('ribbon-from', begins.length ? stamp(begins[0], 0) : ''); show('ribbon-to', begins.length ? stamp(begins[begins.length - 1], 0) : '');
  show('ribbon-unit', unit === month ? 'each tile a month: click to zoom' : unit ? 'each tile a day: click to zoom' : 'each tile a segment');
  $('ribbon-key').replaceChildren(...what.map(f => {
    const e = element('span');
    e.append(element('span', null, 'key seg-' + f), number(counts[f]) + ' ' + fates[f]);
    return e;
  }), ...(feed.error ? [element('span', 'not all is listed: ' + feed.error, 'dim')] : []));
  const shards = (s.leases || []).flatMap(l => p.current && l.segment === p.current ? Object.entries(l.shards || {}) : []);
  show('ribbon-now', [p.current && shards.length ? `segment ${p.current} is read in ${shards.length === 1 ? 'one shard' : shards.length + ' shards'}: ` + shards.sort().map(([k, v]) => k + ' at ' + v).join(', ') : '',
    p.open_since ? `Azure has not finalized it since ${time(p.open_since)}: later segments wait` : ''].filter(Boolean).join(' · '));
  $('whole').setAttribute('aria-pressed', !zoom);
}
$('whole').addEventListener('click', () => { zoom = null; if (shown) drawRibbon(shown); });
$('recent').addEventListener('click', () => {
  if (!feed || !feed.begins.length) return;
  const last = feed.begins[feed.begins.length - 1] + 3600;
  zoom = [last - day, last];
  if (shown) drawRibbon(shown);
});
let shown = null, looked = 0;
async function look(s) {
  shown = s;
  if (Date.now() - looked > 30000 || !feed) {
    looked = Date.now();
    try { feed = await read('segments'); } catch { /* the status says that nobody answers */ }
  }
  drawRibbon(s);
}
