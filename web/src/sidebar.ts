// SPDX-License-Identifier: Apache-2.0
// sidebar.ts - the list of chats: open, rename in place, export as JSON, delete.
import { button, h } from "./dom";
import { type Chat, dropChat, listChats, loadChat, saveChat, titleOf } from "./store";

export interface SidebarEvents {
  open(id: string): void;
  fresh(): void;
  settings(): void;
  dropped(id: string): void;
}

export function exportChat(chat: Chat): void {
  const body = JSON.stringify({ title: chat.title, created: new Date(chat.at).toISOString(),
    messages: chat.turns.map((t) => ({ role: t.role, content: t.text })) }, null, 2);
  const url = URL.createObjectURL(new Blob([body], { type: "application/json" }));
  const slug = chat.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  h("a", { href: url, download: `${slug || "chat"}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export class Sidebar {
  private readonly list = h("ul", { class: "chats", "aria-label": "Chats" });
  readonly root: HTMLElement;
  private current = "";

  constructor(private readonly on: SidebarEvents) {
    this.root = h("nav", { class: "side", id: "side", "aria-label": "Chats and settings" },
      h("header", {}, h("img", { src: "/assets/icon.svg", alt: "" }), h("strong", {}, "Quern"),
        button("New chat", "Start a new chat", () => on.fresh(), "fresh")),
      this.list,
      h("footer", {}, button("Settings", "Open the settings", () => on.settings(), "settings")));
  }

  show(current: string): void {
    this.current = current;
    this.list.replaceChildren(...listChats().map((c) => this.row(c)));
  }

  private row(chat: Chat): HTMLElement {
    const title = chat.title || titleOf(chat.turns[0]?.text ?? "");
    const open = h("button", { type: "button", class: "title", title }, title);
    open.addEventListener("click", () => this.on.open(chat.id));
    const li = h("li", chat.id === this.current ? { class: "now" } : {}, open,
      button("✎", `Rename ${title}`, () => this.rename(li, chat.id, title), "act rename"),
      button("⤓", `Export ${title} as JSON`, () => { const c = loadChat(chat.id); if (c) exportChat(c); }, "act export"),
      button("✕", `Delete ${title}`, () => this.drop(chat.id, title), "act drop"));
    if (chat.id === this.current) open.setAttribute("aria-current", "true");
    return li;
  }

  private drop(id: string, title: string): void {
    if (!confirm(`Delete “${title}”?`)) return;
    dropChat(id);
    this.on.dropped(id);
  }

  private rename(li: HTMLElement, id: string, title: string): void {
    const input = h("input", { "aria-label": "New name", maxlength: "120" });
    input.value = title;
    let done = false;
    const end = (keep: boolean): void => {
      if (done) return;
      done = true;
      const chat = loadChat(id); // as it is now: an answer may have grown it meanwhile
      if (keep && chat && input.value.trim() !== "") saveChat({ ...chat, title: input.value.trim() });
      this.show(this.current);
    };
    input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") end(true);
      if (e.key === "Escape") { e.stopPropagation(); end(false); }
    });
    input.addEventListener("blur", () => end(true));
    li.replaceChildren(input);
    input.focus();
    input.select();
  }
}
