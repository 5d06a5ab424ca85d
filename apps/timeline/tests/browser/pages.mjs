// The pages in a real browser: node pages.mjs URL CHROMIUM [FOLDER FOR PICTURES]
import { chromium } from 'playwright-core';

const [url, executablePath, pictures] = process.argv.slice(2);

function check(condition, message) {
  if (!condition) throw new Error(message);
}

process.on('unhandledRejection', (problem) => { console.error(problem.stack); process.exit(1); });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });

async function visitor() {
  const context = await browser.newContext({ viewport: { width: 1000, height: 760 } });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  page.on('dialog', () => { process.exitCode = 1; console.error('a script of a user ran'); });
  return page;
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: name === 'administration' });
}

async function register(page, name) {
  await page.goto(url);
  const form = page.locator('form[action="/register"]');
  await form.locator('[name=email]').fill(`${name}@example.org`);
  await form.locator('[name=displayName]').fill(name);
  await form.locator('[name=password]').fill('correct horse');
  await form.locator('button').click();
  await page.waitForURL('**/feed');
}

async function post(page, title, message) {
  await page.locator('[name=title]').fill(title);
  await page.locator('[name=message]').fill(message);
  await page.click('#post');
  await page.locator('article h2', { hasText: title }).first().waitFor();
}

const titles = (page) => page.locator('article h2').allTextContents();

try {
  const ann = await visitor();
  await ann.goto(url);
  await picture(ann, 'welcome');
  await register(ann, 'ann');
  const bob = await visitor();
  await register(bob, 'bob');
  for (let i = 0; i < 30; ++i) await post(ann, `post ${i}`, `What I wanted to say for the ${i}th time.`);
  await post(ann, '<b>bold</b>', '<script>alert(1)</script>');
  check(await ann.locator('article h2 b').count() === 0, 'markup of a user is shown as markup');

  // Sign out and in again.
  await ann.click('#logout');
  await ann.locator('#login').waitFor();
  await ann.locator('form[action="/login"] [name=email]').fill('ann@example.org');
  await ann.locator('form[action="/login"] [name=password]').fill('correct horse');
  await ann.click('#login');
  await ann.waitForURL('**/feed');
  check((await titles(ann))[0] === '<b>bold</b>', 'the newest post comes first');

  // Bob finds Ann and follows her; her posts are on his timeline.
  await bob.goto(`${url}/people?q=ann`);
  await bob.locator('#people a', { hasText: 'ann' }).click();
  await bob.click('#follow');
  await bob.locator('#follow', { hasText: 'Unfollow' }).waitFor();
  await picture(bob, 'profile');
  await bob.goto(`${url}/feed`);
  check((await titles(bob)).length === 25, 'a page has 25 posts');
  await picture(bob, 'timeline');
  await bob.click('#more');
  await bob.locator('article').nth(30).waitFor();
  check(await bob.locator('#more').count() === 0, 'there is nothing more to show');
  check((await titles(bob))[30] === 'post 0', 'the oldest post comes last');

  // Two at once: what Ann writes is there when Bob looks again; what she deletes is gone.
  await post(ann, 'fresh', 'just now');
  await bob.goto(`${url}/feed`);
  check((await titles(bob))[0] === 'fresh', 'a new post of somebody followed');
  await Promise.all([
    ann.waitForEvent('load'),
    ann.locator('article', { hasText: 'just now' }).locator('.delete').click(),
  ]);
  check(!(await titles(ann)).includes('fresh'), 'a deleted post of one\'s own');
  check((await titles(ann)).length === 25, 'the page without the deleted post');
  await bob.goto(`${url}/feed`);
  check(!(await titles(bob)).includes('fresh'), 'a deleted post of somebody followed');

  // The administration page refuses Bob.
  const refused = await bob.goto(`${url}/admin`);
  check(refused.status() === 403, 'the administration page for somebody else');
  console.log('ready for the administrator');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  await ann.goto(`${url}/admin`);
  await ann.selectOption('[name=cache]', 'off');
  await ann.locator('[name=frontPage]').fill('5');
  await ann.click('#save');
  await ann.locator('#message', { hasText: 'Saved.' }).waitFor();
  await bob.goto(`${url}/feed`);
  check((await titles(bob)).length === 5, 'the page length that the administrator chose');
  for (let i = 0; i < 10; ++i) await bob.goto(`${url}/feed`);
  await ann.selectOption('[name=cache]', 'on');
  await ann.click('#save');
  await ann.locator('#message', { hasText: 'Saved.' }).waitFor();
  for (let i = 0; i < 10; ++i) await bob.goto(`${url}/feed`);
  await ann.goto(`${url}/admin`);
  await ann.locator('[name=user]').fill('2');
  await ann.click('#invalidate');
  await ann.locator('#message', { hasText: 'loaded anew' }).waitFor();
  check(await ann.locator('#chart polyline').count() === 2, 'a chart of both');
  await picture(ann, 'administration');

  // Without JavaScript "Show more" is a link.
  const plain = await (await browser.newContext({ javaScriptEnabled: false,
    storageState: await bob.context().storageState() })).newPage();
  await plain.goto(`${url}/feed`);
  await plain.click('#more');
  await plain.waitForURL('**/feed?page=1');
  check((await titles(plain)).length === 5, 'the second page');
} catch (problem) {
  console.error(problem.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
}
if (!process.exitCode) console.log('all pages are right');
process.exit(process.exitCode ?? 0);
