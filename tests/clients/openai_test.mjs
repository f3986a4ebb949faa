// SPDX-License-Identifier: Apache-2.0
// openai_test.mjs - OpenAI's SDK for Node against a running server: QUERN_URL. It checks what the SDK
// makes of our answers, errors included, and that an abort ends the work.
import assert from "node:assert/strict";
import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError } from "openai";
import { base, main, running, test, until } from "./lib.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: process.env.QUERN_API_KEY ?? "none", maxRetries: 0 });
const user = (content) => [{ role: "user", content }];
const LONG = user("Write a long story about a miller who lives by the river.");

test("the models are listed", async (w) => {
  const page = await client.models.list();
  assert.equal(page.data[0].object, "model");
  w.model = page.data[0].id;
  assert((await client.models.retrieve(w.model)).id === w.model);
});

test("an answer as a whole", async (w) => {
  const r = await client.chat.completions.create({ model: w.model, messages: user("What is the capital of France?"), temperature: 0, max_tokens: 24 });
  assert.equal(r.object, "chat.completion");
  assert.match(r.choices[0].message.content, /Paris/);
  assert.equal(r.choices[0].message.role, "assistant");
  assert.equal(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens);
  w.whole = r;
});

test("the same answer in a stream, with usage at its end when asked", async (w) => {
  const stream = await client.chat.completions.create({ model: w.model, messages: user("What is the capital of France?"), temperature: 0,
    max_tokens: 24, stream: true, stream_options: { include_usage: true } });
  let text = "", finish = null, usage = null, chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    assert.equal(chunk.object, "chat.completion.chunk");
    text += chunk.choices[0]?.delta.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
    if (chunk.choices.length === 0) usage = chunk.usage;
    else assert(chunk.usage == null);
  }
  assert(chunks > 3);
  assert.equal(text, w.whole.choices[0].message.content);
  assert.equal(finish, w.whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, w.whole.usage.completion_tokens);
});

test("the SDK's own stream helper assembles the answer", async (w) => {
  const runner = client.chat.completions.stream({ model: w.model, messages: user("What is the capital of France?"), temperature: 0, max_tokens: 24 });
  assert.equal((await runner.finalChatCompletion()).choices[0].message.content, w.whole.choices[0].message.content);
});

test("an abort ends the work", async (w) => {
  const stream = await client.chat.completions.create({ model: w.model, messages: LONG, max_tokens: 1500, stream: true });
  let n = 0;
  for await (const _ of stream) if (++n === 5) break; // leaving the loop closes the connection
  await until("the server rests", async () => (await running()) === 0);

  const stopper = new AbortController();
  const late = client.chat.completions.create({ model: w.model, messages: LONG, max_tokens: 1500 }, { signal: stopper.signal });
  const refused = assert.rejects(late, APIUserAbortError);
  await until("the server works", async () => (await running()) === 1);
  stopper.abort();
  await refused;
  await until("the server rests", async () => (await running()) === 0);
});

test("several choices and their logprobs", async (w) => {
  const r = await client.chat.completions.create({ model: w.model, messages: user("Name a colour."), n: 2, seed: 7, temperature: 1,
    max_tokens: 6, logprobs: true, top_logprobs: 3 });
  assert.deepEqual(r.choices.map((c) => c.index), [0, 1]);
  for (const c of r.choices) {
    assert(c.logprobs.content.length > 0);
    for (const e of c.logprobs.content) {
      assert.equal(e.top_logprobs.length, 3);
      assert(e.logprob <= 0 && typeof e.token === "string" && Array.isArray(e.bytes));
      assert(e.top_logprobs[0].logprob >= e.top_logprobs[1].logprob);
    }
  }
});

test("text completions", async (w) => {
  const r = await client.completions.create({ model: w.model, prompt: "The capital of France is", temperature: 0, max_tokens: 4 });
  assert.match(r.choices[0].text, /Paris/);
  let text = "";
  for await (const c of await client.completions.create({ model: w.model, prompt: "The capital of France is", temperature: 0, max_tokens: 4, stream: true }))
    text += c.choices[0]?.text ?? "";
  assert.equal(text, r.choices[0].text);
});

test("errors become the SDK's classes", async (w) => {
  await assert.rejects(client.chat.completions.create({ model: w.model, messages: user("x"), temperature: -1 }),
    (e) => e instanceof BadRequestError && e.param === "temperature" && /temperature/.test(e.message));
  await assert.rejects(client.chat.completions.create({ model: w.model, messages: [] }), BadRequestError);
  await assert.rejects(client.get("/nowhere"), NotFoundError);
});

await main(async () => ({}));
