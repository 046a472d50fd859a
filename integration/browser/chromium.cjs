// What the scripts have in common: a browser, a page that is filled, and requests to the test that runs the script.
'use strict';
const { chromium } = require('playwright-core');
const readline = require('readline');

const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Asks the test for something, and waits until it is done.
async function ask(what) {
  console.log(what);
  await input.next();
}

// Opens the page, and waits until it shows a status and the last hour, or a list of bridges.
async function open(browser, url, options, watch = () => {}) {
  const context = await browser.newContext({ colorScheme: 'light', ...options });
  const page = await context.newPage();
  watch(page);
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector('#bridges tr') || document.getElementById('updated')?.textContent.startsWith('updated') && document.getElementById('hour').dataset.samples);
  return page;
}

// Runs look with a browser and the arguments of the script, and prints what it returns.
async function main(look) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const seen = await look(browser, process.argv.slice(2));
  await browser.close();
  await new Promise(written => process.stdout.write(JSON.stringify(seen) + '\n', written)); // more than a pipe holds
}

module.exports = { open, ask, main: look => main(look).then(() => process.exit(0), e => { console.error(e); process.exit(1); }) };
