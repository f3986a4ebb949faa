// SPDX-License-Identifier: Apache-2.0
// lib.mjs - what the client tests share: named cases, and what the server says it is doing.
import assert from "node:assert/strict";

export const base = process.env.QUERN_URL ?? "http://127.0.0.1:8080";

const cases = [];
export const test = (name, run) => cases.push({ name, run });

// Runs the cases one after another; the last line is the sum, as in all tests of this tree.
export async function main(setUp = async () => ({}), tearDown = async () => {}) {
  let failed = 0;
  const world = await setUp();
  for (const { name, run } of cases) {
    try {
      await run(world);
      console.log(`ok   ${name}`);
    } catch (e) {
      failed++;
      console.log(`FAIL ${name}\n${e.stack ?? e}`);
    }
  }
  await tearDown(world);
  console.log(`${cases.length - failed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// How many requests the server works on, by its metrics.
export async function running() {
  const text = await (await fetch(`${base}/metrics`)).text();
  const line = /^quern_requests_running(?:\{[^}]*\})? (\d+)/m.exec(text);
  assert(line, `no quern_requests_running in the metrics:\n${text}`);
  return Number(line[1]);
}

// Waits until `holds` gives true; a loaded machine gets a minute.
export async function until(what, holds, limit_ms = 60000) {
  const end = Date.now() + limit_ms;
  while (!(await holds())) {
    if (Date.now() > end) assert.fail(`waited ${limit_ms} ms in vain until ${what}`);
    await sleep(20);
  }
}
