// Looks at the status page as people do: on a desk, at night, on a phone, by keyboard, while things change.
//
//   node page.cjs URL DIRECTORY    prints a line of JSON: what it saw; pictures go to DIRECTORY. "grow" on stdout asks
//                                  for more events; a line on stdin says that they are delivered.
'use strict';
const { chromium } = require('playwright-core');
const readline = require('readline');

const [url, dir] = process.argv.slice(2);
const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const problems = [], foreign = [];
  async function open(name, options) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on('console', m => { if (m.type() === 'error' || m.type() === 'warning') problems.push(`${name}: ${m.text()}`); });
    page.on('pageerror', e => problems.push(`${name}: ${e}`));
    page.on('request', r => { if (!r.url().startsWith(url)) foreign.push(r.url()); });
    await page.goto(url);
    await page.waitForFunction(() => document.getElementById('updated').textContent.startsWith('updated'));
    return page;
  }
  const overflow = page => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  const text = (page, id) => page.locator('#' + id).innerText();
  // The smallest contrast of text against what is behind it, as WCAG computes it.
  const contrast = page => page.evaluate(() => {
    const rgb = s => s.match(/[\d.]+/g).map(Number);
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    let least = 21;
    for (const e of document.querySelectorAll('body *')) {
      if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
      let back = e;
      while (back && (rgb(getComputedStyle(back).backgroundColor)[3] ?? 1) === 0) back = back.parentElement;
      const a = light(rgb(getComputedStyle(e).color)), b = light(rgb(getComputedStyle(back || document.body).backgroundColor));
      least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
    }
    return least;
  });

  const desk = await open('desk', { viewport: { width: 1100, height: 900 }, colorScheme: 'light' });
  const before = await text(desk, 'totals');
  console.log('grow');
  await input.next();
  await desk.waitForFunction(old => document.getElementById('totals').innerText !== old, before, { timeout: 10000 });
  const seen = {
    badge: await text(desk, 'badge'), position: await text(desk, 'position'), totals: await text(desk, 'totals'), lag: await text(desk, 'lag'),
    azure: await text(desk, 'azure'), ours: await text(desk, 'ours'), topics: await text(desk, 'topics'), leases: await text(desk, 'leases'), errors: await text(desk, 'errors'),
    overflow: { desk: await overflow(desk) }, contrast: { light: await contrast(desk) },
  };
  await desk.screenshot({ path: dir + '/status-light.png', fullPage: true });

  // By keyboard alone: the skip link first, then the button, which stops the updates and lets them go on.
  const focus = () => desk.evaluate(() => { const e = document.activeElement; return { what: e.id || e.textContent, outline: getComputedStyle(e).outlineStyle }; });
  seen.focus = [];
  for (let i = 0; i < 5; i++) {
    await desk.keyboard.press('Tab');
    seen.focus.push(await focus());
  }
  await desk.locator('#pause').focus();
  await desk.keyboard.press('Enter');
  seen.paused = [await desk.locator('#pause').getAttribute('aria-pressed'), await text(desk, 'pause')];
  await desk.keyboard.press('Space');
  seen.resumed = [await desk.locator('#pause').getAttribute('aria-pressed'), await text(desk, 'pause')];

  const night = await open('night', { viewport: { width: 1100, height: 900 }, colorScheme: 'dark' });
  seen.background = { light: await desk.evaluate(() => getComputedStyle(document.body).backgroundColor), dark: await night.evaluate(() => getComputedStyle(document.body).backgroundColor) };
  seen.contrast.dark = await contrast(night);
  await night.screenshot({ path: dir + '/status-dark.png', fullPage: true });

  const phone = await open('phone', { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: 'light' });
  seen.overflow.phone = await overflow(phone);
  await phone.screenshot({ path: dir + '/status-phone.png' });
  seen.target = await phone.locator('#pause').evaluate(e => e.getBoundingClientRect().height);

  // An instance that goes away is told apart from one that is fine.
  seen.problems = [...problems];
  await desk.route('**/status', r => r.abort());
  await desk.waitForFunction(() => document.getElementById('badge').textContent === 'no answer', null, { timeout: 10000 });
  seen.foreign = foreign;
  await browser.close();
  console.log(JSON.stringify(seen));
}
main().then(() => process.exit(0), e => { console.error(e); process.exit(1); });
