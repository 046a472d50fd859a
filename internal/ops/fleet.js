
const order = ['degraded', 'starting', 'catching_up', 'up_to_date'];
const words = { degraded: 'degraded', starting: 'starting', catching_up: 'catching up', up_to_date: 'up to date' };

function row(b) {
  const link = element('a', b.name), a = b.lag.azure_seconds, ours = b.lag.bridge_seconds;
  link.href = 'bridges/' + encodeURIComponent(b.name) + '/';
  const verdict = element('div', [element('span', null, 'key ' + b.verdict.code), b.verdict.text]); // one child: on a phone, a cell puts its children side by side
  if (b.verdict.remedy) verdict.append(element('div', b.verdict.remedy, 'remedy'));
  const cells = [element('td', link), element('td', verdict), element('td', ours == null ? 'unknown' : span((a || 0) + ours)), element('td', speed(b.throughput.events_per_second)), element('td', b.feed)];
  cells.forEach((td, i) => { td.dataset.label = ['Bridge', 'Verdict', 'Lag', 'Events/s', 'Feed'][i]; });
  return element('tr', cells);
}

let said = '';
function verdict(code, headline, detail) {
  $('verdict').className = code;
  show('headline', headline);
  show('detail', detail);
  document.title = headline + ': bridges';
  if (said === headline) return; // a screen reader hears of changes only
  said = headline;
  show('announce', headline);
}
function render(s) {
  const of = {};
  for (const b of s.bridges) of[b.verdict.code] = (of[b.verdict.code] || 0) + 1;
  const worst = order.find(code => of[code]) || 'starting';
  const bad = of.degraded || 0, all = s.bridges.length, rejected = s.reload ? s.reload.problems : [];
  const headline = !all ? 'No bridges' : bad ? `${bad} of ${all} degraded` : worst === 'up_to_date' ? 'All up to date' : 'Working';
  verdict(rejected.length ? 'degraded' : worst, rejected.length ? headline + ', new settings rejected' : headline,
    order.filter(code => of[code]).map(code => `${of[code]} ${words[code]}`).join(' · '));
  const lags = s.bridges.filter(b => b.lag.bridge_seconds != null).map(b => (b.lag.azure_seconds || 0) + b.lag.bridge_seconds);
  const largest = lags.length && 'largest lag ' + span(Math.max(...lags)), unknown = all - lags.length;
  show('total', all ? [`${count(all, 'bridge')}`, `${speed(s.bridges.reduce((n, b) => n + b.throughput.events_per_second, 0))} events/s`,
    `${number(s.events)} events since the start`, largest && largest + (unknown ? `, ${unknown} unknown` : '')].filter(Boolean).join(' · ') : '');
  $('problems').replaceChildren(...rejected.map(p => {
    const li = element('li', 'settings file, ' + span((Date.parse(s.now) - Date.parse(s.reload.time)) / 1000) + ' ago: ' + p.cause);
    if (p.remedy) li.append(element('div', p.remedy, 'remedy'));
    return li;
  }));
  show('instance', `${s.instance} · ${s.version}`);
  $('bridges').replaceChildren(...s.bridges
    .sort((a, b) => order.indexOf(a.verdict.code) - order.indexOf(b.verdict.code) || (a.name < b.name ? -1 : 1)).map(row));
}
async function tick() {
  try {
    const r = await fetch('status', { cache: 'no-store', signal: AbortSignal.timeout(4000) });
    if (!r.ok) throw new Error();
    render(await r.json());
  } catch {
    verdict('silent', 'No answer', 'This process does not answer. What follows is from before.');
  }
  setTimeout(tick, document.hidden ? 30000 : 5000);
}
tick();
