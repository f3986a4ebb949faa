// SPDX-License-Identifier: Apache-2.0
// speaker.ts - a hidden live region for screen readers. It is fed by the sentence: word by word would
// flood the listener, and the log itself, which changes sixty times a second, is not live.
import { h } from "./dom";

export class Speaker {
  readonly root = h("div", { class: "hidden", "aria-live": "polite" });
  private rest = "";

  say(text: string): void { this.root.append(h("p", {}, text)); }

  reset(): void {
    this.rest = "";
    this.root.replaceChildren();
  }

  push(piece: string): void {
    this.rest += piece;
    const end = Math.max(...[". ", "! ", "? ", "\n", "。"].map((s) => this.rest.lastIndexOf(s)));
    if (end < 0) return;
    this.say(this.rest.slice(0, end + 1));
    this.rest = this.rest.slice(end + 1);
  }

  flush(): void {
    if (this.rest.trim() !== "") this.say(this.rest);
    this.rest = "";
  }
}
