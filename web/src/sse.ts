// SPDX-License-Identifier: Apache-2.0
// sse.ts - the event stream format, fed in pieces of any size. Only `data` matters to us: comments
// (keep-alive) and other fields are skipped; several data lines of one event are joined.

export class SseParser {
  private rest = "";
  private data: string[] = [];
  private sawCr = false;

  // The data of each event that this piece completes.
  push(piece: string): string[] {
    const events: string[] = [];
    // A CR that ended the last piece has ended its line already; the LF of that pair is nothing new.
    if (this.sawCr && piece.startsWith("\n")) piece = piece.slice(1);
    if (piece !== "") this.sawCr = piece.endsWith("\r");
    const lines = (this.rest + piece).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0) events.push(this.data.join("\n"));
        this.data = [];
      } else if (line === "data" || line.startsWith("data:")) {
        const value = line.slice(5);
        this.data.push(value.startsWith(" ") ? value.slice(1) : value);
      }
    }
    return events;
  }
}
