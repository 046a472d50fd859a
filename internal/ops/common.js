
// What both pages have in common.
'use strict';
const $ = id => document.getElementById(id);
// Long paths break behind their slashes, names of hosts before their dots, addresses before an arrow, and lists behind a dot.
const pieces = word => word.split(/(?<=[/?&])(?=[^/])|(?=->)/).flatMap(s => s.split('.').length > 3 ? s.split(/(?=\.[a-z])/i) : [s]);
const tied = text => String(text).replaceAll(' ·', '\u00a0·');
const part = s => { if (!s.startsWith('->')) return [s]; const e = document.createElement('span'); e.className = 'arrow'; e.textContent = '->'; return [e, s.slice(2)]; };
// Short words with hyphens, such as flags and names, are kept whole; copied, they are as they were.
const whole = text => text.split(/((?=\S*(?:\w-|-\w))\S+)/).filter(Boolean).map(s => {
  if (!/^\S*(\w-|-\w)/.test(s) || s.startsWith('->')) return s;
  const e = document.createElement('span');
  e.className = 'whole';
  e.textContent = s;
  return e;
});
const breaks = text => tied(text).split(/(\S{20,})/).flatMap((word, i) => i % 2 ? pieces(word).flatMap((s, i) => i ? [document.createElement('wbr'), ...part(s)] : [s]) : whole(word));
const show = (id, text) => { const e = $(id); if (e.textContent !== tied(text)) e.replaceChildren(...breaks(text)); };
// Two digits of a speed, as the verdict has it: more are only noise.
const speed = n => number(n < 100 ? n : Number(n.toPrecision(2)));
const number = n => n.toLocaleString('en-US', { maximumFractionDigits: n < 10 ? 1 : 0 });
const count = (n, thing) => number(n) + ' ' + thing + (n === 1 ? '' : 's');
const size = n => { let i = 0; for (; n >= 1024 && i < 4; i++) n /= 1024; return number(n) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][i]; };
// A time as the verdict, the log and bridge status have it.
const span = s => {
  const unit = Math.round(s), m = Math.floor(unit / 60), h = Math.floor(Math.round(s / 60) / 60);
  return s == null ? 'unknown' : s > 0 && s < 1 ? s.toFixed(1) + 's' : unit < 60 ? unit + 's' : unit < 3600 ? m + 'm' + unit % 60 + 's'
    : s < 172800 ? h + 'h' + Math.round(s / 60) % 60 + 'm' : number(Math.floor(s / 86400)) + ' days';
};

// Text only: what comes from errors and names is never read as markup.
function element(name, content, cls) {
  const e = document.createElement(name);
  if (content != null) e.append(...[content].flat().flatMap(c => c instanceof Node ? c : breaks(c)));
  if (cls) e.className = cls;
  return e;
}
