
const time = t => t ? t.slice(0, 19).replace('T', ' ') + ' UTC' : '–';
const mostProblems = 6; // that are shown in full
const longText = 200; // characters of an error before it is cut: in its middle, since the cause is at the end
const shorter = s => s.slice(0, s.lastIndexOf(' ', 110) + 1 || 110) + '… ' + s.slice(s.length - 80).replace(/^\S*(?=\s|\/)/, '');
let now = 0, age = 0; // the instance's clock, and its seconds since the start
const ago = t => !t ? '–' : now - Date.parse(t) < 1000 ? 'just now' : span((now - Date.parse(t)) / 1000) + ' ago';

function list(id, pairs) {
  $(id).replaceChildren(...pairs.flatMap(([k, v, title]) => {
    const dd = element('dd', v);
    if (title) dd.title = title;
    return [element('dt', k), dd];
  }));
}

// rowOf returns a row of a table; on a phone, each cell has the name of its column before it.
function rowOf(cells) {
  const tr = element('tr');
  for (const [label, text] of cells) {
    const td = element('td', text);
    td.dataset.label = label;
    tr.append(td);
  }
  return tr;
}

// keyOf breaks a key behind its slashes only: a part that is longer than a line is cut, and the title has all.
function keyOf(key) {
  const e = element('div', key.split(/(?<=\/)/).map(part => element('span', document.createTextNode(part))), 'path');
  e.title = key;
  return e;
}

const tones = { up_to_date: '10703a', catching_up: '0a58c2', starting: '0a58c2', degraded: 'd98a00', silent: 'b3261e' };
let said = '';
function verdict(code, headline, detail, share, problems, remedy) {
  $('verdict').className = code;
  show('headline', headline);
  show('detail', detail);
  $('progress').hidden = share == null;
  if (share != null) {
    $('progress').setAttribute('aria-valuenow', Math.floor(share * 100));
    $('done').style.width = share * 100 + '%';
  }
  const more = problems.length - mostProblems;
  $('problems').replaceChildren(...problems.slice(0, mostProblems).map(p => {
    const li = element('li', p.cause);
    if (p.remedy) li.append(element('div', p.remedy, 'remedy'));
    return li;
  }), ...(more > 0 ? [element('li', `and ${number(more)} more: see the leases below`)] : []));
  $('detail').hidden = $('remedy').hidden = problems.length > 0;
  show('remedy', remedy || '');
  document.title = headline + ': ' + $('name').textContent;
  if (said === code) return; // a screen reader hears of changes, not of every number
  said = code;
  show('announce', headline + '. ' + detail);
  $('icon').href = 'data:image/svg+xml,' + encodeURIComponent('<svg xmlns="' + svgNames + '" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="#' + tones[code] + '"/></svg>');
}

const meaning = {
  drained: 'drained: all of the open segment is delivered', waiting: 'waiting for work', working: 'working', failing: 'failing',
  stuck: 'stuck', elsewhere: 'not held by this instance', unused: 'not used yet',
};
const ageOf = s => (Date.parse(s.now) - Date.parse(s.up_since)) / 1000;
function render(s) {
  now = Date.parse(s.now);
  age = ageOf(s);
  document.body.classList.remove('stale');
  show('name', s.name);
  show('instance', `${s.instance} · ${s.version} · up ${span(age)} · ${s.delivery.replaceAll('_', ' ')} · ${s.feed}`);
  const p = s.position, g = s.progress, code = s.verdict.code;
  const text = g ? s.verdict.text.replace(', ' + g.phase, ': ' + g.phase) : s.verdict.text;
  const [headline, ...rest] = text.split(': '), detail = rest.join(': ');
  const idle = [p.event_time && 'last event ' + ago(p.event_time), p.resolved && 'resolved up to ' + time(p.resolved)].filter(Boolean).join(' · ');
  verdict(code, headline[0].toUpperCase() + headline.slice(1), detail || idle, g && code === 'catching_up' ? g.share : null,
    s.problems.length > 1 ? s.problems : [], s.verdict.remedy);

  const a = s.lag.azure_seconds, b = s.lag.bridge_seconds;
  show('lag', b == null ? 'unknown' : span((a || 0) + b));
  show('azure', a == null ? 'not measured' : span(a)); show('ours', b == null && !s.since_start.transactions ? 'unknown until the first commit' : span(b));
  show('rate', s.since_start.transactions || code === 'up_to_date' ? speed(s.throughput.events_per_second) + ' events/s' : 'nothing yet');
  show('bytes', size(s.throughput.bytes_per_second) + '/s'); show('events', number(s.since_start.events));
  show('resolved', p.resolved ? ago(p.resolved) : 'nothing yet');
  show('marker', time(p.resolved)); show('markers', number(s.since_start.markers));

  const opened = new Set([...document.querySelectorAll('#errors details[open]')].map(d => d.dataset.key));
  const errors = s.errors || [];
  $('errors').replaceChildren(...(errors.length ? errors : [null]).map(e => {
    if (!e) return element('li', 'none', 'dim');
    const li = element('li'), head = element('div', `${ago(e.time)} · ${e.lease < 0 ? 'instance' : 'lease ' + e.lease}${e.class === 'other' ? '' : ' · ' + e.class}${e.count > 1 ? ` · ${number(e.count)} times` : ''}`, 'dim');
    head.title = time(e.time);
    li.append(head);
    if (e.remedy) head.after(element('div', e.remedy, 'remedy'));
    if (e.error.length <= longText) { head.after(element('div', e.error)); return li; }
    const d = element('details');
    d.dataset.key = e.lease + e.error;
    d.open = opened.has(d.dataset.key);
    d.append(element('summary', shorter(e.error)), element('pre', e.error));
    head.after(d);
    return li;
  }));

  // Of each lease a cell; the rest on demand.
  const all = s.leases || [], counts = {};
  $('strip').replaceChildren(...all.map(l => {
    const state = l.failing && l.state !== 'stuck' ? 'failing' : l.state, li = element('li', null, state);
    counts[state] = (counts[state] || 0) + 1;
    li.title = `lease ${l.lease}: ${meaning[state] || state}${l.error ? ': ' + l.error.error.slice(0, longText) : ''}`;
    return li;
  }));
  $('states').replaceChildren(...(all.length ? Object.entries(counts).map(([state, n]) => {
    const e = element('span');
    e.append(element('span', null, 'key ' + state), `${n} ${meaning[state] || state}`);
    return e;
  }) : [element('span', 'none yet', 'dim')]));
  $('strip').setAttribute('aria-label', all.length ? Object.entries(counts).map(([state, n]) => `${n} ${meaning[state] || state}`).join(', ') : 'no leases yet');
  $('details').hidden = !all.length;
  $('leases').replaceChildren(...all.map(l => rowOf([
    ['Lease', l.lease], ['State', l.state + (l.working_seconds >= 1 ? ` for ${span(l.working_seconds)}` : '')], ['Owner', l.owner ? l.owner + (l.here ? ' (here)' : '') : l.here ? 'here' : '–'],
    ['Segment', l.with_frontier && p.completed ? p.completed + ' (done)' : l.segment ? l.segment + (l.done ? ' (done)' : '') : '–'],
    ['Read to', Object.entries(l.shards || {}).map(([k, v]) => k + ': ' + v).join('  ') || '–'], ['Events', number(l.events)], ['Last commit', ago(l.committed)]])));

  // What this instance has written to each partition: a bar each, of the topic with most records; and its last records.
  const sum = {}, parts = s.partitions || [];
  for (const x of parts) sum[x.topic] = (sum[x.topic] || 0) + x.records;
  const most = Object.keys(sum).sort((x, y) => sum[y] - sum[x])[0], bars = parts.filter(x => x.topic === most);
  const top = Math.max(1, ...bars.map(x => x.records)), low = Math.min(...bars.map(x => x.records));
  $('parts').replaceChildren(...bars.map(x => {
    const li = element('li'), bar = element('i');
    bar.style.height = Math.max(2, 78 * x.records / top) + '%';
    li.title = `partition ${x.partition}: ${x.records === 1 ? '1 record or marker' : number(x.records) + ' records and markers'}, the last ${ago(x.last)}`;
    li.append(bar, element('span', bars.length > 24 ? '' : x.partition));
    return li;
  }));
  $('parts').hidden = !bars.length;
  const others = Object.keys(sum).length - 1, wrote = bars.length ? `written here since the start: ${low === top ? number(top) : number(low) + ' to ' + number(top)} ${top === 1 ? 'record or marker' : 'records and markers'} in each partition` : 'this instance has written nothing since its start';
  show('parts-topic', bars.length ? most + (others > 0 ? ` and ${count(others, 'more topic')}` : '') : '');
  show('parts-text', wrote);
  show('parts-marker', p.resolved ? 'each partition is resolved up to' : ''); show('parts-resolved', p.resolved ? time(p.resolved) : '');
  $('parts').setAttribute('aria-label', wrote);
  const records = s.last_records || [], topicsOf = new Set(records.map(r => r.topic)).size, typed = records.some(r => r.type);
  const columns = [['Partition', r => (topicsOf > 1 ? r.topic + '/' : '') + r.partition], ['Offset', r => r.offset < 0 ? '–' : number(r.offset)], ['Key', r => keyOf(r.key)],
    ...(typed ? [['Event', r => r.type || '–']] : []), ['Time', r => time(r.time)], ['Value', r => r.bytes ? size(r.bytes) : 'no bytes']];
  $('records-head').replaceChildren(...columns.map(([name]) => element('th', name)));
  $('records').replaceChildren(...records.map(r => rowOf(columns.map(([name, of]) => [name, of(r)]))));
  $('records-table').hidden = !records.length;
  show('records-text', records.length ? (topicsOf > 1 ? '' : records[0].topic) : 'this instance has committed no record since its start');
  $('example-section').hidden = !s.example;
  if (s.example && !$('example').children.length) {
    list('example', [['key', s.example.key], ['value', s.example.value || 'no bytes'], ...(s.example.headers || []).map(h => [h.slice(0, h.indexOf(': ')), h.slice(h.indexOf(': ') + 2)])]);
  }

  const t = s.since_start;
  list('totals', [['records', number(t.records)], ['left out by settings', number(t.filtered)],
    ...(t.unknown ? [['of an unknown type', number(t.unknown)]] : []), ['late', number(t.late)], ['dead letters', number(t.dead_lettered)],
    ['transactions', number(t.transactions)], ['segments completed', number(t.segments)], ['bytes', size(t.bytes)]]);
  const topics = s.topics || [], shown = topics.slice(0, 10);
  list('topics', [...shown.map(x => [x.name, count(x.partitions, 'partition')]), ...(topics.length > shown.length ? [['and more', number(topics.length - shown.length)]] : []),
    ...(topics.length ? [] : [['none yet', '']])]);
  show('updated', 'updated ' + time(s.now));
}

$('back').hidden = !location.pathname.includes('/bridges/'); // of a process with many
let heard = Date.now(), paused = false, timer, due = 0;
const clock = t => new Date(t).toISOString().slice(11, 19) + ' UTC';
async function read(name) {
  const r = await fetch(name, { cache: 'no-store', signal: AbortSignal.timeout(4000) });
  if (!r.ok) throw new Error(`it answers ${r.status} ${r.statusText}`);
  return r.json();
}
async function tick() {
  clearTimeout(timer);
  try {
    const s = await read('status');
    render(s);
    look(s);
    heard = Date.now();
    if (heard >= due) {
      hour = await read('history');
      due = heard + (ageOf(s) < 600 ? 2000 : 10000); // an axis of minutes ends now, or it shows a gap
    }
    drawHour();
  } catch (e) {
    document.body.classList.add('stale');
    const why = e.message && e.message.startsWith('it answers') ? ` (${e.message})` : '';
    verdict('silent', 'No answer', `This instance has not answered since ${clock(heard)}${why}. ${now ? 'What follows is from then.' : ''}`, null, []);
  }
  if (!paused) timer = setTimeout(tick, document.hidden ? 15000 : 2000);
}
$('pause').addEventListener('click', () => {
  paused = !paused; show('pause', paused ? 'Resume' : 'Pause'); $('pause').setAttribute('aria-pressed', paused);
  if (paused) clearTimeout(timer); else tick();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) tick(); });
tick();
