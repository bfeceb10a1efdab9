// Opens traces in speedscope and prints what it shows, as JSON: speedscope.mjs CHROMIUM TRACE...
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [executablePath, ...files] = process.argv.slice(2);
const folder = dirname(createRequire(import.meta.url).resolve('speedscope/package.json'));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND'] });
for (const file of files) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  const found = { file, messages: [], profiles: 0 };
  // Chromium itself writes about WebGL. The end of a slice has no arguments, which speedscope mentions, and then ends the slice.
  const note = text => { if (!/WebGL|was on the top of the stack\. Ending [^]* instead\.$|^speedscope v|^Importing as Trace Event Format profile$|^import: /.test(text)) found.messages.push(text); };
  page.on('console', m => note(m.text()));
  page.on('pageerror', e => note(String(e)));
  page.on('dialog', d => { note(d.message()); d.dismiss(); });
  await page.goto(pathToFileURL(`${folder}/dist/release/index.html`).href);
  await page.setInputFiles('input[type=file]', file);
  const text = await page.waitForFunction(() => document.body.innerText.match(/\(1\/(\d+)\)/) || document.body.innerText.includes('went wrong'), null, { timeout: 60000 });
  const match = await text.jsonValue();
  found.profiles = Array.isArray(match) ? Number(match[1]) : 0;
  await page.context().close();
  console.log(JSON.stringify(found));
}
await browser.close();
