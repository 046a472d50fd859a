// Looks at the status page in each of its states as people do: on a desk, on a tablet, on a phone, at night, by keyboard.
//
//   node states.cjs URL DIRECTORY TIMES STATE…    prints a line of JSON: what it saw; pictures go to DIRECTORY. "fail" on stdout
//                                           asks for an error in the last state, "stop" for the end of the server; a
//                                           line on stdin says that it is done.
'use strict';
const { open, main, ask } = require('./chromium.cjs');

const widths = { phone: 390, tablet: 768, desk: 1180 };

// The smallest contrast of text against what is behind it, as WCAG computes it.
function contrast() {
  const rgb = s => s.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let least = { ratio: 21, text: '' };
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    let back = e;
    while (back && (rgb(getComputedStyle(back).backgroundColor)[3] ?? 1) === 0) back = back.parentElement;
    const a = light(rgb(getComputedStyle(e).color)), b = light(rgb(getComputedStyle(back || document.body).backgroundColor));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least.ratio) least = { ratio, text: e.textContent.slice(0, 60) };
  }
  return least;
}

// What is wider than the page, or than the box that it is in.
function overflow() {
  const wide = [...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 0.5);
  return document.documentElement.scrollWidth > innerWidth ? ['the page'] : wide.map(e => e.tagName + ' ' + (e.id || e.textContent.slice(0, 40)));
}

// What a screen reader has of the page: everything that says something in a picture alone needs words.
const names = page => page.evaluate(() => [...document.querySelectorAll('[role=img], [role=progressbar]')].filter(e => e.checkVisibility()).map(e =>
  ({ what: e.id, name: e.getAttribute('aria-label') || document.getElementById(e.getAttribute('aria-labelledby') || '')?.textContent || '', now: e.getAttribute('aria-valuenow') })));

// Words that are broken although they would fit into a line. Slashes, hyphens and dots may end a line.
function broken() {
  const found = [], walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    if (!node.parentElement.checkVisibility()) continue;
    for (const word of node.data.matchAll(/\w{1,24}/g)) {
      const r = document.createRange();
      r.setStart(node, word.index);
      r.setEnd(node, word.index + word[0].length);
      if (new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1 && word[0].length < 24) found.push(word[0]);
    }
  }
  return found;
}

main(async (browser, [url, dir, times, ...states]) => {
  const seen = { views: [], problems: [], foreign: [] };
  const visit = (state, name, options) => open(browser, url + state + '/', options, page => {
    page.on('console', m => { if (m.type() === 'error' || m.type() === 'warning') seen.problems.push(`${state}, ${name}: ${m.text()}`); });
    page.on('pageerror', e => seen.problems.push(`${state}, ${name}: ${e}`));
    page.on('request', r => { if (!r.url().startsWith(url) && !r.url().startsWith('data:')) seen.foreign.push(r.url()); });
  });
  async function view(page, state, name) {
    const text = id => page.locator('#' + id).innerText();
    const v = {
      state, name, verdict: await page.locator('#verdict').getAttribute('class'), headline: await text('headline'), detail: await text('detail'), all: await page.locator('body').innerText(),
      overflow: await page.evaluate(overflow), broken: await page.evaluate(broken), contrast: await page.evaluate(contrast), names: await names(page), title: await page.title(), said: await page.locator('#announce').textContent(),
      key: await text('ribbon-key'), current: await text('ribbon-now'), bar: await page.evaluate(() => { const all = [...document.querySelectorAll('#hour rect')].map(r => [Number(r.getAttribute('x')), Number(r.getAttribute('x')) + Number(r.getAttribute('width'))]); return [Math.min(...all.map(r => r[0])), Math.max(...all.map(r => r[1]))]; }),
      samples: Number(await page.locator('#hour').getAttribute('data-samples')), cells: await page.locator('#strip li').count(), partitions: await page.locator('#parts li').count(), records: await page.locator('#records tr').count(),
      ribbon: await text('ribbon-to'), newest: await page.locator('#position dt:has-text("newest segment") + dd').textContent(),
    };
    await page.screenshot({ path: `${dir}/status-${state}-${name}.png`, fullPage: true });
    v.wide = await page.evaluate(() => { // how much of the card four bars take
      const parts = $('parts'), all = [...parts.children];
      parts.replaceChildren(...all.slice(0, 4));
      const bars = [...parts.children].map(e => e.getBoundingClientRect());
      parts.replaceChildren(...all);
      return bars.length ? (bars[bars.length - 1].right - bars[0].left) / parts.clientWidth : 1;
    });
    seen.views.push(v);
  }

  for (const state of states) {
    for (const [name, width] of Object.entries(widths)) {
      const page = await visit(state, name, { viewport: { width, height: 800 } });
      await view(page, state, name);
      if (name === 'desk' && await page.locator('#errors summary').count()) { // a long error, in full
        await page.locator('#errors summary').first().click();
        await page.locator('#details > summary').click();
        await view(page, state, 'open');
      }
      await page.context().close();
    }
    const night = await visit(state, 'dark', { viewport: { width: widths.desk, height: 800 }, colorScheme: 'dark' });
    await view(night, state, 'dark');
    await night.context().close();
  }

  const spans = await visit(states[0], 'desk', {});
  seen.spans = await spans.evaluate(all => all.map(s => span(s)), JSON.parse(times));
  seen.nowhere = await spans.evaluate(() => currentOf({ position: { beyond_feed: 'no segment' }, verdict: { code: 'degraded' }, started: true }));
  seen.breaks = await spans.evaluate(address => { // widths at which an address, the arrow between two, a flag, or a name with a hyphen breaks
    const e = $('detail'), at = [];
    e.replaceChildren(...breaks(`read tcp ${address}->${address}: i/o timeout: bridge reset --yes of a fl-photos`));
    const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), words = [];
    for (let node; (node = walk.nextNode());) {
      for (const word of node.data.matchAll(new RegExp(address.replaceAll('.', '\\.') + '|->|--yes|fl-photos', 'g'))) {
        const r = document.createRange();
        r.setStart(node, word.index);
        r.setEnd(node, word.index + word[0].length);
        words.push(r);
      }
    }
    if (words.length !== 5) return ['the parts are not there: ' + e.textContent];
    for (let width = 180; width < 500; width += 4) {
      e.style.width = width + 'px';
      if (words.some(r => new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1)) at.push(width);
    }
    return at;
  }, '127.0.0.1:50682');
  await spans.context().close();

  seen.fleet = [];
  for (const [name, width] of Object.entries(widths)) { // the list of a process with many
    const page = await visit('fleet', name, { viewport: { width, height: 800 } });
    await page.screenshot({ path: `${dir}/fleet-${name}.png`, fullPage: true });
    seen.fleet.push({
      name, overflow: await page.evaluate(overflow), broken: await page.evaluate(broken), remedy: await page.locator('.remedy').first().evaluate(e => e.getBoundingClientRect().width),
      labels: await page.locator('#bridges td').first().evaluate(e => getComputedStyle(e, '::before').content), all: await page.locator('body').innerText(),
    });
    await page.context().close();
  }

  // By keyboard alone: the skip link first, then the button, which stops the updates and lets them go on.
  const last = states[states.length - 1], page = await visit(last, 'desk', { viewport: { width: widths.desk, height: 800 } });
  seen.focus = [];
  for (let i = 0; i < 8; i++) {
    await page.keyboard.press('Tab');
    seen.focus.push(await page.evaluate(() => { const e = document.activeElement; return { what: e.id || e.textContent, outline: getComputedStyle(e).outlineStyle }; }));
  }
  const pressed = async () => page.locator('#pause').evaluate(e => [e.getAttribute('aria-pressed'), e.textContent]);
  await page.locator('#pause').focus();
  await page.keyboard.press('Enter');
  seen.paused = await pressed();
  await page.keyboard.press('Space');
  seen.resumed = await pressed();
  seen.target = await page.locator('#pause').evaluate(e => e.getBoundingClientRect().height);

  // Amber within seconds of an error, and another color when the instance itself is gone.
  const is = (cls, timeout) => page.waitForFunction(c => document.getElementById('verdict').className === c, cls, { timeout });
  await is('up_to_date', 5000);
  await ask('fail');
  let began = Date.now();
  await is('degraded', 10000);
  seen.amber = (Date.now() - began) / 1000;
  seen.before = [...seen.problems]; // what is lost now is wanted
  await ask('stop');
  began = Date.now();
  await is('silent', 15000);
  seen.silent = (Date.now() - began) / 1000;
  seen.foreign = [...new Set(seen.foreign)];
  seen.problems = seen.before;
  await view(page, last, 'gone');
  return seen;
});
