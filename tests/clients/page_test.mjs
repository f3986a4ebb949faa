// SPDX-License-Identifier: Apache-2.0
// page_test.mjs - the chat page in a real browser (Chromium, driven by Playwright) against a running
// server: QUERN_URL. QUERN_SHOT=FILE takes the screenshot of the docs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";
import { base, main, running, test, until } from "./lib.mjs";

const LONG = "Write a long story about a miller who lives by the river. Do not stop early.";
const HOSTILE = [
  '<img src=x onerror="window.pwned=1"> <script>window.pwned=2</script>',
  "[click](javascript:window.pwned=3) [data](data:text/html,<script>window.pwned=4</script>)",
  "![pic](/x.png) [ok](https://example.org/a_(b)) <javascript:alert(1)> <https://example.org/>",
  "[tab](java\tscript:window.pwned=5) [ent](&#106;avascript:window.pwned=6)",
  '```html\n<iframe src="javascript:window.pwned=7"></iframe>\n```',
  '| a | <b onmouseover="window.pwned=8">b</b> |\n|---|---|\n| <svg/onload=window.pwned=9> | x |',
].join("\n\n");

const sse = (events) => events.map((e) => `data: ${typeof e === "string" ? e : JSON.stringify(e)}\n\n`).join("");
const answerWith = (text) => sse([
  { choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] },
  { choices: [{ index: 0, delta: { content: text }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }, "[DONE]"]);

const openPage = async (w, options = {}) => {
  const context = await w.browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.faults = [];
  page.on("pageerror", (e) => page.faults.push(String(e)));
  page.on("console", (m) => { if (m.type() === "error" && !/Failed to load resource/.test(m.text())) page.faults.push(m.text()); });
  page.on("request", (r) => { if (!r.url().startsWith(base) && !r.url().startsWith("blob:")) page.faults.push(`went to ${r.url()}`); });
  await page.goto(base);
  return page;
};
const say = async (page, text) => {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
};
const idle = (page) => page.getByRole("button", { name: "Send the message" }).waitFor();
const lastAnswer = (page) => page.locator(".turn.assistant .body").last();
const fake = (page, text) => page.route("**/v1/chat/completions", (r) =>
  r.fulfill({ status: 200, contentType: "text/event-stream", body: answerWith(text) }));

test("an answer streams in and tells its speed", async (w) => {
  const page = w.page;
  await page.getByRole("heading", { level: 1 }).filter({ hasNotText: "Quern" }).waitFor();
  await say(page, LONG);
  await page.getByRole("button", { name: "Stop the answer" }).waitFor();
  const sizes = new Set();
  await until("the answer has grown in three steps", async () => {
    const n = (await lastAnswer(page).textContent()).length;
    if (n > 0) sizes.add(n);
    return sizes.size >= 3;
  });
  await idle(page);
  assert.match(await page.locator(".turn.assistant .facts").last().textContent(), /[\d.]+ tokens\/s .*\d+ tokens .*prompt \d+/);
});

test("stop ends the answer here and the work there", async (w) => {
  const page = w.page;
  await say(page, LONG);
  await until("some text has come", async () => (await lastAnswer(page).textContent()).length > 10);
  assert.equal(await running(), 1);
  await page.keyboard.press("Escape");
  await idle(page);
  await until("the server rests", async () => (await running()) === 0);
  const text = await lastAnswer(page).textContent();
  assert(text.length > 10);
  assert.equal(await page.locator(".turn.assistant .facts").last().textContent(), "stopped");
});

test("leaving the page ends the work too", async (w) => {
  const page = await openPage(w);
  await say(page, LONG);
  await until("some text has come", async () => (await lastAnswer(page).textContent()).length > 10);
  await page.context().close();
  await until("the server rests", async () => (await running()) === 0);
});

test("a reload keeps history and settings", async (w) => {
  const page = w.page;
  const before = await page.locator(".log").innerText();
  await page.getByRole("button", { name: "Open the settings" }).click();
  await page.getByLabel("Temperature").fill("0.5");
  await page.getByLabel("Max tokens").fill("none");
  await page.getByRole("button", { name: "Save" }).click();
  assert.match(await page.getByRole("alert").last().textContent(), /Max tokens: a whole number/);
  await page.getByLabel("Max tokens").fill("24");
  await page.getByLabel("System prompt").fill("You are terse.");
  await page.getByRole("button", { name: "Save" }).click();
  await page.reload();
  assert.equal(await page.locator(".log").innerText(), before);
  await page.getByRole("button", { name: "Open the settings" }).click();
  assert.equal(await page.getByLabel("Temperature").inputValue(), "0.5");
  assert.equal(await page.getByLabel("System prompt").inputValue(), "You are terse.");
  await page.keyboard.press("Escape");
  const asked = page.waitForRequest("**/v1/chat/completions");
  await say(page, "Hello!");
  const body = (await asked).postDataJSON();
  assert.equal(body.temperature, 0.5);
  assert.equal(body.max_tokens, 24);
  assert.deepEqual(body.messages[0], { role: "system", content: "You are terse." });
  assert.equal(body.messages.at(-1).content, "Hello!");
  await idle(page);
  assert.equal(await page.locator(".turn .error:visible").count(), 0);
});

test("chats can be started, renamed, exported, reopened and deleted", async (w) => {
  const page = w.page;
  const rows = page.locator(".chats li");
  const n = await rows.count();
  await page.getByRole("button", { name: "Start a new chat" }).click();
  await say(page, "Name three rivers.");
  await idle(page);
  assert.equal(await rows.count(), n + 1);
  await rows.first().getByRole("button", { name: /^Rename/ }).click();
  await page.getByLabel("New name").fill("Rivers");
  await page.keyboard.press("Enter");
  const download = page.waitForEvent("download");
  await rows.first().getByRole("button", { name: /^Export/ }).click();
  const stream = await (await download).createReadStream();
  let json = "";
  for await (const piece of stream) json += piece;
  const chat = JSON.parse(json);
  assert.equal(chat.title, "Rivers");
  assert.deepEqual(chat.messages.map((m) => m.role), ["user", "assistant"]);
  await rows.nth(1).locator(".title").click();
  assert(!(await page.locator(".log").innerText()).includes("rivers"));
  page.once("dialog", (d) => d.accept());
  await rows.first().getByRole("button", { name: "Delete Rivers" }).click();
  await until("the row is gone", async () => (await rows.count()) === n);
});

test("another try replaces the answer, an edit replaces the question", async (w) => {
  const page = await openPage(w);
  await fake(page, "first");
  await say(page, "one");
  await idle(page);
  await page.unroute("**/v1/chat/completions");
  await fake(page, "second");
  await page.getByRole("button", { name: "Ask for another answer" }).click();
  await until("the second answer stands", async () => (await page.locator(".turn.assistant").allInnerTexts()).join().includes("second"));
  assert.equal(await page.locator(".turn").count(), 2);
  await page.getByRole("button", { name: "Edit and send again" }).click();
  await page.getByLabel("Edit your message").fill("two");
  const asked = page.waitForRequest("**/v1/chat/completions");
  await page.keyboard.press("Enter");
  assert.deepEqual((await asked).postDataJSON().messages, [{ role: "user", content: "two" }]);
  await idle(page);
  assert.equal(await page.locator(".turn.user .body").innerText(), "two");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("hostile text stays text", async (w) => {
  const page = await openPage(w);
  await fake(page, HOSTILE);
  await say(page, HOSTILE);
  await idle(page);
  await page.reload();
  const log = page.locator(".log");
  assert.equal(await log.locator("img, script, iframe, svg").count(), 0);
  for (const href of await log.locator("a").evaluateAll((all) => all.map((a) => a.getAttribute("href"))))
    assert.match(href, /^https:\/\/example\.org\//);
  assert.equal(await log.locator("a").count(), 2);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert((await log.innerText()).includes("<img src=x onerror"));
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("what goes wrong is told", async (w) => {
  const page = await openPage(w);
  const shown = () => page.locator(".turn .error").last().textContent();
  await page.route("**/v1/chat/completions", (r) => r.fulfill({ status: 400, contentType: "application/json",
    body: JSON.stringify({ error: { message: "temperature must be at least 0" } }) }));
  await say(page, "a");
  await idle(page);
  assert.equal(await shown(), "temperature must be at least 0");
  await page.unroute("**/v1/chat/completions");
  await page.route("**/v1/chat/completions", (r) => r.abort("connectionrefused"));
  await say(page, "b");
  await idle(page);
  assert.match(await shown(), /does not answer/);
  await page.unroute("**/v1/chat/completions");
  await page.route("**/v1/chat/completions", (r) => r.fulfill({ status: 200, contentType: "text/event-stream",
    body: sse([{ choices: [{ index: 0, delta: { content: "half" } }] }, { error: { message: "the engine stopped" } }]) }));
  await say(page, "c");
  await idle(page);
  assert.equal(await shown(), "the engine stopped");
  assert.equal(await lastAnswer(page).innerText(), "half");
  await page.route("**/v1/models", (r) => r.fulfill({ status: 200, contentType: "application/json",
    body: JSON.stringify({ object: "list", data: [{ id: "plain", capabilities: { chat_completions: false } }] }) }));
  await page.reload();
  await page.locator(".banner").filter({ hasText: "plain has no chat template" }).filter({ hasText: "--template FILE" }).waitFor();
  await page.context().close();
});

test("a phone's width is enough", async (w) => {
  const page = await openPage(w, { viewport: { width: 375, height: 667 }, hasTouch: true });
  await fake(page, `${"x".repeat(300)}\n\n\`\`\`\n${"code ".repeat(60)}\n\`\`\`\n\n| a | b |\n|---|---|\n| ${"wide".repeat(30)} | c |`);
  await say(page, "wide");
  await idle(page);
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert(await page.evaluate(() => document.querySelector(".log").scrollWidth <= innerWidth));
  assert(!(await page.getByRole("button", { name: "Start a new chat" }).isVisible()));
  await page.getByRole("button", { name: "Show chats and settings" }).click();
  await page.getByRole("button", { name: "Start a new chat" }).click();
  assert(!(await page.getByRole("button", { name: "Start a new chat" }).isVisible()));
  await page.context().close();
});

test("every control is named, and both colour schemes are legible", async (w) => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await openPage(w, { colorScheme });
    await fake(page, "An answer with `code` and a [link](https://example.org/).");
    await say(page, "hello");
    await idle(page);
    const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, input, textarea")]
      .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length);
    assert.equal(unnamed, 0);
    const low = await page.evaluate(() => {
      const light = (c) => { const v = c.match(/[\d.]+/g).map(Number).slice(0, 3).map((x) => x / 255)
        .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
      const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\)$/.test(c)) return c; } return "rgb(255,255,255)"; };
      return [...document.querySelectorAll("h1, p, button, a, code, .facts, .hint, .body")].filter((e) => e.offsetParent && !+(getComputedStyle(e).opacity < 0.5)).flatMap((e) => {
        const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        return ratio < 4.5 ? [`${e.className || e.tagName} ${ratio.toFixed(2)}`] : [];
      });
    });
    assert.deepEqual(low, [], colorScheme);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

// Any cut of any text into pieces must end in the page that drawing it at once gives.
const PIECES = ["# head\n", "para **bold** and _em_", "\n\n", "- item\n", "  - inner\n", "1. one\n", "2. two\n", "```js\nlet a = 1;\n",
  "```\n", "> quote\n", "| a | b |\n|---|:-:|\n| 1 | 2 |\n", "***\n", "`code", "`", "**", "~~no~~ ", "[l](https://example.org)", "\\*", "<b>", "\n", " ", "é☃"];
test("a stream in any pieces draws what the whole draws", async (w) => {
  const bundle = execFileSync("esbuild", ["web/src/markdown.ts", "--bundle", "--format=iife", "--global-name=md"], { encoding: "utf8" });
  const page = await w.browser.newPage();
  const bad = await page.evaluate(({ bundle, pieces }) => {
    const md = new Function(`${bundle}; return md;`)();
    let seed = 12345;
    const draw = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) % n; };
    for (let i = 0; i < 400; i++) {
      let text = "";
      for (let k = draw(25) + 1; k > 0; k--) text += pieces[draw(pieces.length)];
      const at_once = new md.MarkdownView(document.createElement("div"));
      at_once.set(text);
      const stream = new md.MarkdownView(document.createElement("div"));
      for (let at = 0; at < text.length;) stream.set(text.slice(0, at += draw(9) + 1));
      if (stream.root.innerHTML !== at_once.root.innerHTML) return text;
    }
    return null;
  }, { bundle, pieces: PIECES });
  assert.equal(bad, null);
  const shape = async (source) => page.evaluate(({ bundle, source }) => {
    const md = new Function(`${bundle}; return md;`)();
    const v = new md.MarkdownView(document.createElement("div"));
    v.set(source);
    for (const b of v.root.querySelectorAll("figcaption")) b.remove();
    return v.root.innerHTML.replace(/ (target|rel|tabindex)="[^"]*"/g, "");
  }, { bundle, source });
  const wants = [
    ["a *b* **c** ***d*** ~~e~~ `f*g*`", "<p>a <em>b</em> <strong>c</strong> <strong><em>d</em></strong> <del>e</del> <code>f*g*</code></p>"],
    ["**a *b* c** 2 * 3 * 4 snake_case_name", "<p><strong>a <em>b</em> c</strong> 2 * 3 * 4 snake_case_name</p>"],
    ["line\nnext", "<p>line<br>next</p>"],
    ["- a\n- b\n  1. c\n  2. d\n- e", "<ul><li>a</li><li>b<ol><li>c</li><li>d</li></ol></li><li>e</li></ul>"],
    ["1. a\n\n2. b\n\ntext", "<ol><li>a</li><li>b</li></ol><p>text</p>"],
    ["3) x", '<ol start="3"><li>x</li></ol>'],
    ["1. x\n   ```\n   code\n\n   more\n   ```\n2. y", "<ol><li>x<figure><pre><code>code\n\nmore</code></pre></figure></li><li>y</li></ol>"],
    ["```\na\n\n# b", "<figure><pre><code>a\n\n# b</code></pre></figure>"],
    ["> a\n> - b", "<blockquote><p>a</p><ul><li>b</li></ul></blockquote>"],
    ["| a | b |\n|---|---:|\n| 1 | 2 |", '<div class="wide"><table><thead><tr><th>a</th><th style="text-align: right;">b</th></tr></thead><tbody><tr><td>1</td><td style="text-align: right;">2</td></tr></tbody></table></div>'],
    ["see https://example.org/a_b. [x **y**](https://example.org)", '<p>see <a href="https://example.org/a_b">https://example.org/a_b</a>. <a href="https://example.org">x <strong>y</strong></a></p>'],
    ["\\*no\\* <b>no</b> & **open", "<p>*no* &lt;b&gt;no&lt;/b&gt; &amp; **open</p>"],
    ["## Two ##\ntext", "<h2>Two</h2><p>text</p>"],
  ];
  for (const [source, want] of wants) assert.equal(await shape(source), want, source);
  // Time grows with the text, not with its square: marks without partners are where that goes wrong.
  for (const mark of ["*a ", "`", "[", "_x", "> ", "- ", "|", "**", "![]("]) await shape(mark.repeat(4000));
  await page.close();
});

if (process.env.QUERN_SHOT) {
  test("the screenshot of the docs", async (w) => {
    const page = await openPage(w, { viewport: { width: 1000, height: 640 } });
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await page.getByRole("heading", { level: 1 }).filter({ hasNotText: "Quern" }).waitFor();
    await page.getByRole("button", { name: "Open the settings" }).click();
    await page.getByLabel("Temperature").fill("0");
    await page.getByLabel("Max tokens").fill("160");
    await page.getByRole("button", { name: "Save" }).click();
    for (const text of ["What is the capital of France?", "Write a short list of three things to see there."]) {
      await say(page, text);
      await idle(page);
    }
    await page.mouse.move(600, 300);
    await page.screenshot({ path: process.env.QUERN_SHOT });
    await page.context().close();
  });
}

test("no fault on the way", async (w) => assert.deepEqual(w.page.faults, []));

await main(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const world = { browser };
  world.page = await openPage(world);
  return world;
}, (w) => w.browser.close());
