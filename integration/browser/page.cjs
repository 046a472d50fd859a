// Looks at the status page of a program that runs.
//
//   node page.cjs URL    prints a line of JSON: what it saw. "grow" on stdout asks for more events, "stop" for the end of
//                        the program; a line on stdin says that it is done.
'use strict';
const { open, main, ask } = require('./chromium.cjs');

main(async (browser, [url]) => {
  const page = await open(browser, url, { viewport: { width: 1180, height: 800 } });
  const text = id => page.locator('#' + id).textContent();
  const before = await text('events');
  await ask('grow');
  await page.waitForFunction(old => document.getElementById('events').textContent !== old, before, { timeout: 10000 });
  const seen = {};
  for (const id of ['headline', 'position', 'events', 'lag', 'azure', 'ours', 'topics', 'states', 'leases', 'errors']) seen[id] = await text(id);
  seen.samples = Number(await page.locator('#hour').getAttribute('data-samples'));
  await ask('stop');
  await page.waitForFunction(() => document.getElementById('verdict').className === 'silent', null, { timeout: 15000 });
  seen.gone = await text('detail');
  return seen;
});
