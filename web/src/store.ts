// SPDX-License-Identifier: Apache-2.0
// store.ts - chats and settings in this browser's localStorage; nothing is kept on the server. A key per
// chat, so two tabs with different chats never overwrite each other. What is read back is checked: an
// entry that makes no sense is left out, never fatal.

export interface Turn { role: "user" | "assistant"; text: string; facts?: string; error?: string }
export interface Chat { id: string; title: string; at: number; turns: Turn[] }
export interface Settings {
  temperature: string; top_p: string; max_tokens: string; seed: string; system: string; key: string;
}

const CHAT = "quern.chat.";
const SETTINGS = "quern.settings";
export const defaults: Settings = { temperature: "", top_p: "", max_tokens: "", seed: "", system: "", key: "" };

function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function isTurn(v: unknown): v is Turn {
  const t = v as Turn | null;
  return typeof t === "object" && t !== null && (t.role === "user" || t.role === "assistant") && typeof t.text === "string";
}

function isChat(v: unknown): v is Chat {
  const c = v as Chat | null;
  return typeof c === "object" && c !== null && typeof c.id === "string" && typeof c.title === "string" &&
    typeof c.at === "number" && Array.isArray(c.turns) && c.turns.every(isTurn);
}

export function newChat(): Chat {
  const random = crypto.getRandomValues(new Uint32Array(2));
  return { id: `${Date.now().toString(36)}-${Array.from(random, (n) => n.toString(36)).join("")}`, title: "", at: Date.now(), turns: [] };
}

export function loadChat(id: string): Chat | null {
  const c = read(CHAT + id);
  return isChat(c) ? c : null;
}

// Newest first.
export function listChats(): Chat[] {
  const all: Chat[] = [];
  try {
    for (let i = 0; i < localStorage.length; i++) {
      const key = localStorage.key(i);
      const c = key?.startsWith(CHAT) ? read(key) : null;
      if (isChat(c)) all.push(c);
    }
  } catch { /* storage is switched off: an empty list */ }
  return all.sort((a, b) => b.at - a.at);
}

// null, or why it could not be kept.
function write(key: string, value: unknown): string | null {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return null;
  } catch {
    return "This browser has no room left for chats (or storage is switched off). Export and delete some.";
  }
}

export const saveChat = (c: Chat): string | null => write(CHAT + c.id, c);
export const dropChat = (id: string): void => { try { localStorage.removeItem(CHAT + id); } catch { /* nothing kept */ } };

export function loadSettings(): Settings {
  const s = read(SETTINGS) as Partial<Record<keyof Settings, unknown>> | null;
  const all = { ...defaults };
  for (const name of Object.keys(defaults) as (keyof Settings)[]) {
    const v = s?.[name];
    if (typeof v === "string") all[name] = v;
  }
  return all;
}

export const saveSettings = (s: Settings): string | null => write(SETTINGS, s);

export const titleOf = (text: string): string => {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 48 ? line.slice(0, 47).trimEnd() + "…" : line || "New chat";
};
