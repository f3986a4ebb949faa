// SPDX-License-Identifier: Apache-2.0
// main.ts - the chat page: one state, one chat on show, at most one answer on its way.
import { type Answer, type Ask, chat as ask, type Message, type ModelInfo, models } from "./api";
import { button, h } from "./dom";
import { asNumber, openSettings } from "./settings";
import { Sidebar } from "./sidebar";
import { Speaker } from "./speaker";
import { type Chat, listChats, loadChat, loadSettings, newChat, saveChat, saveSettings, titleOf, type Turn } from "./store";
import { Log } from "./turns";

const SAVE_MS = 1000; // a growing answer is kept this often, so that a closed tab loses little

class Page {
  private settings = loadSettings();
  private chat: Chat = newChat();
  private model: ModelInfo | null = null;
  private stopper: AbortController | null = null;

  private readonly app: HTMLElement;
  private readonly name = h("h1", {}, "Quern");
  private readonly banner = h("div", { class: "banner", role: "status", hidden: true });
  private readonly log = new Log({ regenerate: () => this.regenerate(), edit: (text) => this.edit(text) });
  private readonly speaker = new Speaker();
  private readonly input = h("textarea", { rows: "1", placeholder: "Message", "aria-label": "Message" });
  private readonly send = h("button", { type: "submit", class: "primary" }, "Send");
  private readonly menu = button("☰", "Show chats and settings", () => this.drawer(!this.app.classList.contains("open")), "menu");
  private readonly side = new Sidebar({
    open: (id) => this.open(id),
    fresh: () => this.fresh(),
    settings: () => { this.drawer(false); this.editSettings(); },
    dropped: (id) => { if (id === this.chat.id) this.fresh(); else this.side.show(this.chat.id); },
  });

  constructor(app: HTMLElement) {
    this.app = app;
    const form = h("form", {}, this.input, this.send);
    app.replaceChildren(this.side.root, h("main", {}, h("div", { class: "bar" }, this.menu, this.name), this.banner,
      this.log.root, this.log.jump, this.speaker.root,
      h("div", { class: "compose" }, form, h("div", { class: "hint" }, "Enter sends, Shift+Enter starts a line, Esc stops the answer."))));
    this.menu.setAttribute("aria-controls", "side");
    form.addEventListener("submit", (e) => { e.preventDefault(); if (this.stopper) this.stop(); else this.submit(); });
    this.input.addEventListener("input", () => this.fit());
    this.input.addEventListener("keydown", (e) => {
      // isComposing: that Enter chooses a word of an input method
      if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
      e.preventDefault();
      if (!this.stopper) this.submit();
    });
    document.addEventListener("keydown", (e) => this.escape(e));
    window.addEventListener("storage", () => this.refresh());
    window.addEventListener("pagehide", () => { if (this.chat.turns.length > 0) saveChat(this.chat); });
    const last = listChats().find((c) => c.id === sessionStorage.getItem("quern.open")) ?? listChats()[0];
    if (last) this.chat = last;
    this.show();
    void this.connect();
    this.input.focus();
  }

  private escape(e: KeyboardEvent): void {
    if (e.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (this.app.classList.contains("open")) this.drawer(false);
    else this.stop();
  }

  private drawer(open: boolean): void {
    this.app.classList.toggle("open", open);
    this.menu.setAttribute("aria-expanded", String(open));
  }

  private fit(): void {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 200)}px`;
  }

  private tell(text: string | null): void {
    this.banner.hidden = text === null;
    this.banner.textContent = text ?? "";
  }

  private async connect(): Promise<void> {
    try {
      const found = (await models(this.settings.key))[0] ?? null;
      this.model = found;
      this.name.textContent = found?.id ?? "no model";
      document.title = found ? `${found.id} · Quern` : "Quern";
      this.tell(found && !found.chats ? `${found.id} has no chat template, so it can complete text but not chat. ` +
        "Start the server with --template FILE, or use POST /v1/completions." : null);
    } catch (e) {
      this.model = null;
      this.tell((e as Error).message);
    }
  }

  private show(): void {
    sessionStorage.setItem("quern.open", this.chat.id);
    this.side.show(this.chat.id);
    this.log.show(this.chat.turns, false);
  }

  // Another tab has changed something.
  private refresh(): void {
    this.settings = loadSettings();
    if (!this.stopper) {
      const stored = loadChat(this.chat.id);
      if (stored && stored.turns.length !== this.chat.turns.length) {
        this.chat = stored;
        this.log.show(stored.turns, false);
      }
    }
    this.side.show(this.chat.id);
  }

  private open(id: string): void {
    this.stop();
    this.drawer(false);
    const c = loadChat(id);
    if (c) this.chat = c;
    this.show();
    this.input.focus();
  }

  private fresh(): void {
    this.stop();
    this.drawer(false);
    this.chat = newChat();
    this.show();
    this.input.focus();
  }

  private editSettings(): void {
    openSettings(this.settings, (s) => {
      this.settings = s;
      this.tell(saveSettings(s));
      void this.connect();
    });
  }

  private stop(): void { this.stopper?.abort(); }

  private submit(): void {
    const text = this.input.value.trim();
    if (text === "") return;
    this.input.value = "";
    this.fit();
    this.chat.turns.push({ role: "user", text });
    if (this.chat.title === "") this.chat.title = titleOf(text);
    void this.answer();
  }

  private regenerate(): void {
    if (this.stopper) return;
    if (this.chat.turns[this.chat.turns.length - 1]?.role === "assistant") this.chat.turns.pop();
    void this.answer();
  }

  private edit(text: string): void {
    if (this.stopper) return;
    const last = this.chat.turns.map((t) => t.role).lastIndexOf("user");
    this.chat.turns.splice(last, Infinity, { role: "user", text });
    void this.answer();
  }

  private question(): Ask {
    const messages: Message[] = [];
    if (this.settings.system.trim() !== "") messages.push({ role: "system", content: this.settings.system });
    // An answer that failed before its first word was no turn.
    for (const t of this.chat.turns) if (t.text !== "") messages.push({ role: t.role, content: t.text });
    const q: Ask = { model: this.model?.id ?? "", messages };
    for (const name of ["temperature", "top_p", "max_tokens", "seed"] as const) {
      const v = asNumber(this.settings[name]);
      if (v !== undefined) q[name] = v;
    }
    return q;
  }

  private async answer(): Promise<void> {
    const chat = this.chat;
    chat.at = Date.now();
    if (!this.model) await this.connect();
    const q = this.question();
    const turn: Turn = { role: "assistant", text: "" };
    chat.turns.push(turn);
    const stopper = new AbortController();
    this.stopper = stopper;
    this.busy(true);
    this.tell(saveChat(chat));
    this.side.show(chat.id);
    this.log.show(chat.turns, true);
    this.speaker.reset();
    const began = performance.now();
    let first = 0;
    let kept = began;
    try {
      const a = await ask(q, this.settings.key, stopper.signal, (piece) => {
        const now = performance.now();
        if (first === 0) first = now;
        turn.text += piece;
        this.speaker.push(piece);
        if (this.chat === chat) this.log.grow();
        if (now - kept > SAVE_MS) { kept = now; saveChat(chat); }
      });
      turn.facts = facts(a, first - began, performance.now() - first);
    } catch (e) {
      if (stopper.signal.aborted) turn.facts = "stopped";
      else turn.error = (e as Error).message;
    }
    if (turn.text === "" && turn.facts === "stopped") chat.turns.pop();
    this.speaker.flush();
    this.stopper = null;
    this.busy(false);
    const renamed = loadChat(chat.id)?.title; // it may have been renamed meanwhile
    if (renamed) chat.title = renamed;
    if (loadChat(chat.id)) this.tell(saveChat(chat)); // not a chat that was deleted meanwhile
    this.side.show(this.chat.id);
    if (this.chat === chat) {
      if (chat.turns.includes(turn)) this.log.finish();
      else this.log.show(chat.turns, false);
    }
  }

  private busy(on: boolean): void {
    this.send.textContent = on ? "Stop" : "Send";
    this.send.classList.toggle("stop", on);
    this.send.setAttribute("aria-label", on ? "Stop the answer" : "Send the message");
  }
}

function facts(a: Answer, wait_ms: number, stream_ms: number): string {
  const parts: string[] = [];
  if (a.usage) {
    const n = a.usage.completion;
    // The first token is not made within the time that is measured.
    if (n > 1 && stream_ms > 0) parts.push(`${((n - 1) / (stream_ms / 1000)).toFixed(1)} tokens/s`);
    parts.push(`${n} tokens`, `prompt ${a.usage.prompt}${a.usage.cached > 0 ? ` (${a.usage.cached} cached)` : ""}`);
  }
  if (wait_ms > 0) parts.push(`first after ${(wait_ms / 1000).toFixed(2)} s`);
  if (a.seed !== undefined) parts.push(`seed ${a.seed}`);
  if (a.finish === "length") parts.push("cut at its maximum length");
  return [...parts, ...a.warnings].join(" · ");
}

const app = document.getElementById("app");
if (app) new Page(app);
