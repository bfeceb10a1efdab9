// Opens reports in Chromium and prints what it finds, as JSON: pages.mjs CHROMIUM PAGE...
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [executablePath, ...files] = process.argv.slice(2);
const pictures = process.env.SCREENSHOTS; // a folder, to look at the pages
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND'] });

// open opens a page in a window, and notes its requests, its messages and its errors.
const open = async (file, options, found) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on('request', r => { if (r.url() !== pathToFileURL(file).href) found.requests.push(r.url()); });
  page.on('console', m => found.messages.push(m.text()));
  page.on('pageerror', e => found.messages.push(String(e)));
  await page.goto(pathToFileURL(file).href);
  return page;
};

// violations returns the serious problems for people who do not see a page, or use no mouse.
const violations = async page => {
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }));
  return result.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.target + ' ' + n.html.slice(0, 120)).join('; ')}`);
};

const picture = async (page, file, name) => {
  if (pictures) await page.screenshot({ path: `${pictures}/${file.split('/').pop().replace('.html', '')}-${name}.png`, fullPage: !process.env.FOLD });
};

for (const file of files) {
  const found = { file, requests: [], messages: [], violations: [] };
  const page = await open(file, {}, found);
  found.sections = await page.locator('main > section').count();
  found.hidden = 0;
  for (const h of await page.locator('main > section > h2').all()) if (!await h.isVisible()) found.hidden++;
  found.pictures = await page.locator('svg.plot, svg.band').count();
  found.violations.push(...await violations(page));
  await picture(page, file, 'light');
  await page.emulateMedia({ colorScheme: 'dark' });
  if (file === files[0]) found.violations.push(...(await violations(page)).map(v => 'dark: ' + v));
  await picture(page, file, 'dark');
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  found.details = await page.evaluate(() => { const p = document.querySelector('details p'); return p ? Math.round(p.getBoundingClientRect().height) : 0; });
  await picture(page, file, 'print');
  await page.emulateMedia({ media: null });
  await page.setViewportSize({ width: 360, height: 800 });
  found.wide = await page.evaluate(() => document.documentElement.scrollWidth);
  if (file === files[0]) found.violations.push(...(await violations(page)).map(v => 'narrow: ' + v));
  await picture(page, file, 'narrow');
  await page.context().close();
  console.log(JSON.stringify(found));
}
await browser.close();
