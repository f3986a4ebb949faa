// SPDX-License-Identifier: Apache-2.0
// turns.ts - one turn of a chat on the page, and the log that holds them and follows its end.
import { button, copyButton, h } from "./dom";
import { MarkdownView } from "./markdown";
import type { Turn } from "./store";

export interface TurnEvents { regenerate(): void; edit(text: string): void }

const NEAR = 90; // px from the end at which the log keeps following it

export class TurnView {
  readonly root: HTMLElement;
  private readonly body = h("div", { class: "body" });
  private readonly acts = h("div", { class: "acts" });
  private readonly markdown: MarkdownView | null;
  private readonly error = h("div", { class: "error", role: "alert", hidden: true });

  constructor(readonly turn: Turn, private readonly on: TurnEvents) {
    const mine = turn.role === "user";
    this.markdown = mine ? null : new MarkdownView(this.body);
    this.root = h("article", { class: `turn ${turn.role}`, "aria-label": mine ? "You" : "Answer" }, this.body, this.error, this.acts);
    this.draw();
  }

  draw(): void {
    if (this.markdown) this.markdown.set(this.turn.text);
    else this.body.textContent = this.turn.text;
    this.error.hidden = !this.turn.error;
    this.error.textContent = this.turn.error ?? "";
  }

  // What can be done with it; `last` also offers another try, or another wording.
  offer(last: boolean, busy: boolean): void {
    const all: (Node | string)[] = [];
    this.body.classList.toggle("wait", busy && last && this.turn.role === "assistant");
    if (!(busy && last)) {
      if (this.turn.text !== "") all.push(copyButton("Copy this message", () => this.turn.text));
      if (last && !busy) {
        all.push(this.turn.role === "user" ? button("Edit", "Edit and send again", () => this.edit(), "edit")
          : button("Try again", "Ask for another answer", () => this.on.regenerate(), "again"));
      }
      if (this.turn.facts) all.push(h("span", { class: "facts" }, this.turn.facts));
    }
    this.acts.replaceChildren(...all);
  }

  private edit(): void {
    const area = h("textarea", { "aria-label": "Edit your message" });
    area.value = this.turn.text;
    const stop = (): void => this.root.replaceChildren(this.body, this.error, this.acts);
    const send = (): void => { if (area.value.trim() !== "") this.on.edit(area.value); };
    area.addEventListener("keydown", (e) => {
      if (e.isComposing) return;
      if (e.key === "Escape") { e.stopPropagation(); stop(); }
      if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); send(); }
    });
    this.root.replaceChildren(area, h("div", { class: "acts" }, button("Cancel", "Leave the message as it is", stop),
      button("Send", "Send the edited message", send)));
    area.focus();
  }
}

export class Log {
  readonly root = h("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: "0" });
  readonly jump = button("↓ Latest", "Jump to the latest message", () => this.toEnd(), "jump");
  private views: TurnView[] = [];
  private frame = 0;

  constructor(private readonly on: TurnEvents) {
    this.jump.hidden = true;
    this.root.addEventListener("scroll", () => { this.jump.hidden = this.atEnd(); }, { passive: true });
  }

  private atEnd(): boolean { return this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < NEAR; }
  private toEnd(): void { this.root.scrollTop = this.root.scrollHeight; }

  show(turns: Turn[], busy: boolean): void {
    this.views = turns.map((t) => new TurnView(t, this.on));
    this.root.replaceChildren(...(turns.length > 0 ? this.views.map((v) => v.root)
      : [h("p", { class: "empty" }, "Ask something. The answer is made on this machine; the chat stays in this browser.")]));
    this.offers(busy);
    this.toEnd();
  }

  offers(busy: boolean): void {
    // Edit sits on the last question, a new try on the last answer.
    const lastUser = this.views.map((v) => v.turn.role).lastIndexOf("user");
    this.views.forEach((v, i) => v.offer(v.turn.role === "user" ? i === lastUser : i === this.views.length - 1, busy));
  }

  // At most one drawing a frame, however fast the pieces come.
  grow(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const follow = this.atEnd();
      this.views[this.views.length - 1]?.draw();
      if (follow) this.toEnd();
      else this.jump.hidden = false;
    });
  }

  finish(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const follow = this.atEnd();
    this.views[this.views.length - 1]?.draw();
    this.offers(false);
    if (follow) this.toEnd();
  }
}
