
'use strict';
const $ = id => document.getElementById(id);
const show = (id, text) => { const e = $(id); if (e.textContent !== text) e.textContent = text; };
const number = n => n.toLocaleString('en-US', { maximumFractionDigits: n < 10 ? 1 : 0 });
const span = s => s == null ? 'unknown' : s < 120 ? Math.round(s) + ' s' : s < 7200 ? Math.round(s / 60) + ' min' : s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' days';
const order = ['degraded', 'starting', 'catching_up', 'up_to_date'];
const words = { degraded: 'degraded', starting: 'starting', catching_up: 'catching up', up_to_date: 'up to date' };

// Text only: what comes from errors and names is never read as markup.
function element(name, ...children) {
  const e = document.createElement(name);
  e.append(...children);
  return e;
}
function row(b) {
  const link = element('a', b.name), key = element('span'), a = b.lag.azure_seconds, ours = b.lag.bridge_seconds;
  link.href = 'bridges/' + encodeURIComponent(b.name) + '/';
  key.className = 'key ' + b.verdict.code;
  const verdict = element('div', key, b.verdict.text); // one child: on a phone, a cell puts its children side by side
  if (b.verdict.remedy) verdict.append(Object.assign(element('div', b.verdict.remedy), { className: 'remedy' }));
  const cells = [element('td', link), element('td', verdict), element('td', ours == null ? 'unknown' : span((a || 0) + ours)), element('td', number(b.throughput.events_per_second)), element('td', b.feed)];
  cells.forEach((td, i) => { td.dataset.label = ['Bridge', 'Verdict', 'Lag', 'Events/s', 'Feed'][i]; });
  return element('tr', ...cells);
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
  const count = {};
  for (const b of s.bridges) count[b.verdict.code] = (count[b.verdict.code] || 0) + 1;
  const worst = order.find(code => count[code]) || 'starting';
  const bad = count.degraded || 0, all = s.bridges.length, rejected = s.reload ? s.reload.problems : [];
  const headline = !all ? 'No bridges' : bad ? `${bad} of ${all} degraded` : worst === 'up_to_date' ? 'All up to date' : 'Working';
  verdict(rejected.length ? 'degraded' : worst, rejected.length ? headline + ', new settings rejected' : headline,
    order.filter(code => count[code]).map(code => `${count[code]} ${words[code]}`).join(' · '));
  const lags = s.bridges.filter(b => b.lag.bridge_seconds != null).map(b => (b.lag.azure_seconds || 0) + b.lag.bridge_seconds);
  show('total', all ? [`${number(all)} bridges`, `${number(s.bridges.reduce((n, b) => n + b.throughput.events_per_second, 0))} events/s`,
    `${number(s.bridges.reduce((n, b) => n + b.events, 0))} events since the start`, lags.length ? `largest lag ${span(Math.max(...lags))}` : ''].filter(Boolean).join(' · ') : '');
  $('problems').replaceChildren(...rejected.map(text => element('li', 'settings file, ' + span((Date.parse(s.now) - Date.parse(s.reload.time)) / 1000) + ' ago: ' + text)));
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
