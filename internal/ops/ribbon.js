
// The feed as a ribbon: each segment a tile, from the oldest that the account still holds to the newest.
let feed = null, zoom = null, picked = null; // zoom: [from, to) in Unix seconds, null: the whole feed; picked: a tile
const hourLong = 3600, day = 24 * hourLong, month = 30 * day, year = 365 * day;
const segmentTime = s => s ? Date.UTC(+s.slice(0, 4), s.slice(5, 7) - 1, +s.slice(8, 10), +s.slice(11, 13), +s.slice(13, 15)) / 1000 : null;
const segmentName = t => stamp(t, 0).replace(/[- ]/g, '/').replace(':', '');
const stamp = (t, unit) => new Date(t * 1000).toISOString().slice(0, unit === month ? 7 : unit === day ? 10 : 16).replace('T', ' ');
const monthOf = (t, ahead) => Date.UTC(new Date(t * 1000).getUTCFullYear(), new Date(t * 1000).getUTCMonth() + ahead, 1) / 1000;
const fates = { // in the order in which a tile of many has them
  deleted: 'deleted by retention', omitted: 'before the start', delivered: 'delivered', skipped: 'skipped by a seek', partly: 'left out in part', gap: 'lost: deleted undelivered', current: 'being delivered', failing: 'failing',
  bundled: 'being delivered in a bundle', overdue: 'open for too long', waiting: 'waiting',
};
const fateOf = f => f === 'current' && shown && { up_to_date: 'open, delivered so far', degraded: 'current' }[shown.verdict.code] || fates[f];
const rare = ['gap', 'skipped', 'partly', 'current', 'failing', 'bundled', 'overdue']; // one of them in a month must be seen

// within reports whether a segment that begins then is in a stretch.
const within = (s, begin) => begin > (segmentTime(s.after) ?? -Infinity) && begin <= segmentTime(s.to);
const timeOf = updated => updated ? +updated.slice(0, -20) : null; // in seconds
// fateBy returns what says what became of a segment.
function fateBy(s, all) {
  const p = s.position, current = segmentTime(p.current), completed = segmentTime(p.completed) ?? -Infinity;
  const among = (all, begin) => (all || []).some(s => within(s, begin));
  const whole = begin => p.delivered.some(s => within(s, begin) && !(begin < timeOf(s.from))); // a stretch may begin at a time
  const bundle = !p.current && s.progress && s.progress.phase === 'catching up' ? all.find(b => b > completed) : null;
  const fails = (s.leases || []).some(l => (l.failing || l.state === 'stuck') && (!l.segment || l.segment === p.current || bundle));
  return begin => feed.lost.some(l => begin >= l.from && begin < l.to) ? 'gap'
    : begin === current ? fails ? 'failing' : p.open_since ? 'overdue' : 'current'
    : begin <= completed ? begin < feed.oldest ? 'deleted' : among(p.delivered, begin) ? whole(begin) ? 'delivered' : 'partly' : among(p.skipped, begin) ? 'skipped' : 'omitted'
    : begin < feed.oldest ? 'gap' : begin === bundle ? fails ? 'failing' : 'bundled' : 'waiting';
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
const currentOf = s => s.position.current || (s.position.ended ? 'ended' : s.verdict.code === 'catching_up' ? 'several in a bundle' : s.position.beyond_feed ? 'no segment where the bridge is' : s.started ? 'waits for the next segment' : '–');
// drawPosition shows where the bridge is in the feed. The newest segment is that of the ribbon, so that the two agree.
function drawPosition(s) {
  const p = s.position, newest = feed && feed.begins.length ? feed.begins[feed.begins.length - 1] : segmentTime(p.newest);
  const at = segmentTime(p.current || p.completed), ahead = newest == null || at == null ? 0 : Math.max(0, newest - at);
  list('position', [
    ['current segment', currentOf(s)], ['completed', p.completed || '–'],
    ['newest segment', newest != null ? segmentName(newest) + (feed && feed.error ? ', not all is listed' : '') : feed && feed.error ? 'unknown: ' + feed.error : feed && feed.listed ? 'the feed has none' : 'not listed yet'],
    ...(ahead ? [['still ahead', span(ahead)]] : []),
    ['last event', p.event_time ? ago(p.event_time) : '–', time(p.event_time)],
    ...(p.headroom_seconds == null ? [] : [['older history held', span(p.headroom_seconds)]]), ...(p.gaps ? [['gaps', number(p.gaps)]] : []),
    ...(p.skipped || []).filter(s => feed && feed.begins.some(b => within(s, b))).map(s => ['skipped by a seek', `after ${s.after}, before ${s.from ? stamp(timeOf(s.from), 0) : segmentName(segmentTime(s.to) + 60)}`]),
  ]);
}
function drawRibbon(s) {
  drawPosition(s);
  if (!feed) return;
  const p = s.position, all = feed.begins, begins = zoom ? all.filter(b => b >= zoom[0] && b < zoom[1]) : all, fate = fateBy(s, all);
  $('ribbon-section').hidden = false;
  $('ribbon-section').className = all.length ? '' : 'empty';
  if (!all.length) {
    show('ribbon-unit', feed.error ? 'its segments cannot be listed: ' + feed.error : 'it has no segment yet');
    return;
  }
  const from = begins.length ? begins[0] : zoom[0], to = (begins.length ? begins[begins.length - 1] : zoom[1]) + hourLong;
  const unit = begins.length <= 200 ? 0 : (to - from) / day <= 400 ? day : month;
  const tiles = new Map(), counts = {}; // in the order of the segments; where the feed has none, there is no tile
  for (const b of begins) {
    const at = unit === month ? monthOf(b, 0) : unit ? b - b % unit : b, f = fate(b);
    if (!tiles.has(at)) tiles.set(at, {});
    tiles.get(at)[f] = (tiles.get(at)[f] || 0) + 1;
    counts[f] = (counts[f] || 0) + 1;
  }
  const width = 1000 / Math.max(1, tiles.size), gap = width < 4 ? 0 : Math.min(2, width / 5), parts = [], what = Object.keys(fates).filter(f => counts[f]);
  const says = ([at, of]) => stamp(at, unit) + (unit ? ', ' + number(Object.values(of).reduce((a, b) => a + b)) + ' segments' : '') + ': ' +
    Object.entries(of).map(([f, n]) => (unit ? number(n) + ' ' : '') + fateOf(f)).join(', ');
  let x = 0;
  for (const [at, of] of tiles) {
    const n = Object.values(of).reduce((a, b) => a + b), marks = rare.filter(f => of[f]).length;
    const least = f => unit && rare.includes(f) ? Math.min(3, (width - gap) * 0.7 / marks) : 0;
    const rest = width - gap - Object.keys(of).reduce((sum, f) => sum + least(f), 0);
    let left = x;
    for (const f of Object.keys(fates).filter(f => of[f])) {
      const part = least(f) + rest * of[f] / n, r = rect('tile seg-' + f, left.toFixed(2), part.toFixed(2), says([at, of]));
      r.addEventListener('click', () => {
        if (unit) zoom = [at, unit === month ? monthOf(at, 1) : at + day];
        picked = unit ? null : at;
        drawRibbon(shown);
      });
      parts.push(r);
      left += part;
    }
    x += width;
  }
  $('ribbon').replaceChildren(...parts);
  $('ribbon').setAttribute('class', unit ? 'zooms' : '');
  $('ribbon').setAttribute('aria-label', `${number(begins.length)} segments from ${stamp(from, 0)} to ${stamp(to - hourLong, 0)}: ` + what.map(f => number(counts[f]) + ' ' + fateOf(f)).join(', '));
  show('ribbon-from', begins.length ? stamp(begins[0], 0) : ''); show('ribbon-to', begins.length ? stamp(begins[begins.length - 1], 0) : 'no segments then');
  show('ribbon-unit', unit ? `each tile a ${unit === month ? 'month' : 'day'}: click to zoom` : 'each tile a segment: click for more');
  $('ribbon-key').replaceChildren(...what.map(f => {
    const e = element('span');
    e.append(element('span', null, 'key seg-' + f), number(counts[f]) + ' ' + fateOf(f));
    return e;
  }), ...(feed.error ? [element('span', 'not all is listed: ' + feed.error, 'dim')] : []));
  const shards = (s.leases || []).flatMap(l => p.current && l.segment === p.current ? Object.entries(l.shards || {}) : []);
  const read = shards.sort().slice(0, 4).map(([k, v]) => k + ' at ' + v).join(', ') + (shards.length > 4 ? ', …' : ''); // all are in the leases
  show('ribbon-now', [shards.length ? `segment ${p.current} is read in ${shards.length === 1 ? 'one shard' : shards.length + ' shards'}: ` + read : p.current ? `segment ${p.current} is current` : s.started ? currentOf(s) : '',
    p.open_since ? `Azure has not finalized it since ${time(p.open_since)}: later segments wait` : ''].filter(Boolean).join(' · '));
  const one = !unit && tiles.get(picked);
  show('ribbon-picked', one ? says([picked, one]) + (picked < feed.oldest ? '' : ` · bridge dump --segment ${segmentName(picked)} prints its events`) : '');
  $('whole').setAttribute('aria-pressed', !zoom);
  $('year').hidden = all[all.length - 1] - all[0] < year;
}
// around zooms to a time that has the position in its middle, and does not go beyond the feed.
function around(wide) {
  const p = shown.position, last = feed.begins[feed.begins.length - 1] + hourLong, at = segmentTime(p.current || p.completed) ?? feed.begins[0];
  const to = Math.min(last, Math.max(at, feed.begins[0]) + wide / 2);
  zoom = [to - wide, to];
  drawRibbon(shown);
}
$('whole').addEventListener('click', () => { zoom = null; if (shown) drawRibbon(shown); });
for (const [id, wide] of [['year', year], ['day', day]]) $(id).addEventListener('click', () => { if (feed && feed.begins.length) around(wide); });
let shown = null, looked = 0;
async function look(s) {
  shown = s;
  drawPosition(s);
  const p = s.position, newer = feed && Math.max(segmentTime(p.newest), segmentTime(p.current)) > Math.max(...feed.begins.slice(-1));
  if (Date.now() - looked > 30000 || !feed || newer) {
    looked = Date.now();
    try { feed = await read('segments'); } catch { /* the status says that nobody answers */ }
  }
  drawRibbon(s);
}
