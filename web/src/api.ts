// SPDX-License-Identifier: Apache-2.0
// api.ts - the two endpoints that the page uses: /v1/models and a streamed /v1/chat/completions. Every
// failure becomes one Error with a sentence that a person can act on.
import { SseParser } from "./sse";

export interface Message { role: "system" | "user" | "assistant"; content: string }
export interface ModelInfo { id: string; context?: number; chats: boolean }
export interface Usage { prompt: number; completion: number; cached: number }
export interface Answer { finish: string; usage?: Usage; seed?: string; warnings: string[] }
export interface Ask {
  model: string; messages: Message[]; temperature?: number; top_p?: number; max_tokens?: number; seed?: number;
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const member = (v: Json | undefined, key: string): Json | undefined =>
  v !== null && typeof v === "object" && !Array.isArray(v) ? v[key] : undefined;
const text = (v: Json | undefined): string | undefined => (typeof v === "string" ? v : undefined);
const count = (v: Json | undefined): number => (typeof v === "number" ? v : 0);

function headers(key: string): Record<string, string> {
  const all: Record<string, string> = { "content-type": "application/json" };
  if (key !== "") all["authorization"] = `Bearer ${key}`;
  return all;
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new Error("The server does not answer. Is `quern serve` still running?");
  }
}

async function refusal(r: Response): Promise<Error> {
  let said: string | undefined;
  try {
    said = text(member(member((await r.json()) as Json, "error"), "message"));
  } catch { /* no JSON: the status has to do */ }
  if (r.status === 401) return new Error(`${said ?? "The server wants an API key."} Enter the key in the settings.`);
  return new Error(said ?? `The server answered with status ${r.status}.`);
}

export async function models(key: string): Promise<ModelInfo[]> {
  const r = await reach("/v1/models", { headers: headers(key) });
  if (!r.ok) throw await refusal(r);
  const data = member((await r.json()) as Json, "data");
  if (!Array.isArray(data)) throw new Error("The list of models is not as expected.");
  return data.flatMap((m) => {
    const id = text(member(m, "id"));
    if (id === undefined) return [];
    const info: ModelInfo = { id, chats: member(member(m, "capabilities"), "chat_completions") !== false };
    const context = member(m, "context_window");
    if (typeof context === "number") info.context = context;
    return [info];
  });
}

// Streams one answer; onText gets each piece. Aborting the signal closes the connection, by which the
// server stops working; the rejection is then the signal's AbortError.
export async function chat(ask: Ask, key: string, signal: AbortSignal, onText: (piece: string) => void): Promise<Answer> {
  const body = JSON.stringify({ ...ask, stream: true, stream_options: { include_usage: true } });
  const r = await reach("/v1/chat/completions", { method: "POST", headers: headers(key), body, signal });
  if (!r.ok) throw await refusal(r);
  if (!r.body) throw new Error("The answer has no body.");

  const answer: Answer = { finish: "", warnings: [] };
  const reader = r.body.getReader();
  const decoder = new TextDecoder();
  const events = new SseParser();
  for (;;) {
    const piece = await reader.read().catch((e: unknown) => {
      if (signal.aborted) throw e;
      throw new Error("The connection broke before the answer was complete.");
    });
    for (const data of events.push(piece.done ? decoder.decode() : decoder.decode(piece.value, { stream: true }))) {
      if (data === "[DONE]") return answer;
      take(answer, JSON.parse(data) as Json, onText);
    }
    if (piece.done) throw new Error("The connection ended before the answer was complete.");
  }
}

function take(answer: Answer, chunk: Json, onText: (piece: string) => void): void {
  const failed = member(chunk, "error");
  if (failed !== undefined && failed !== null) throw new Error(text(member(failed, "message")) ?? "The server failed.");
  const usage = member(chunk, "usage");
  if (usage !== undefined && usage !== null) {
    answer.usage = {
      prompt: count(member(usage, "prompt_tokens")), completion: count(member(usage, "completion_tokens")),
      cached: count(member(member(usage, "prompt_tokens_details"), "cached_tokens")),
    };
  }
  const warnings = member(chunk, "warnings");
  if (Array.isArray(warnings)) answer.warnings.push(...warnings.map((w) => text(w) ?? JSON.stringify(w)));
  const choices = member(chunk, "choices");
  const choice = Array.isArray(choices) ? choices[0] : undefined;
  const content = text(member(member(choice, "delta"), "content"));
  if (content) onText(content);
  const seed = member(choice, "seed");
  if (typeof seed === "number") answer.seed = String(seed);
  const finish = text(member(choice, "finish_reason"));
  if (finish) answer.finish = finish;
}
