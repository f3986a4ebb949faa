// SPDX-License-Identifier: Apache-2.0
// markdown.ts - the Markdown that models write, as elements. Blocks are found in the whole text, and
// each is drawn from its own source alone; while an answer streams, only a block whose source changed is
// drawn again. So the stream's last state is what drawing the text at once would give.
// Inside a paragraph a line end is a line end, as chats have it. HTML stays text.
import { copyButton, h } from "./dom";
import { inline } from "./inline";

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const CELLS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const DEPTH = 12; // of lists and quotes; deeper ones are drawn flat

const blank = (line: string): boolean => /^[ \t]*$/.test(line);
const isTable = (line: string, next: string | undefined): boolean =>
  line.includes("|") && next !== undefined && next.includes("-") && CELLS.test(next) && next.includes("|");

function fenceEnd(lines: string[], from: number, mark: string): number {
  const close = new RegExp(`^ {0,3}${mark[0] === "`" ? "`" : "~"}{${mark.length},}[ \\t]*$`);
  for (let i = from; i < lines.length; i++) if (close.test(lines[i] ?? "")) return i + 1;
  return lines.length; // still open: all that came so far is code
}

function startsBlock(line: string, next: string | undefined): boolean {
  const item = ITEM.exec(line);
  // A number in the middle of a paragraph starts a list only if it is 1, and an empty item never does.
  if (item && !blank(line.slice(item[0].length)) && (!/\d/.test(item[2] ?? "") || /^1\D/.test(item[2] ?? ""))) return true;
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || isTable(line, next);
}

// Where the block that starts at line i ends.
function blockEnd(lines: string[], i: number): number {
  const line = lines[i] ?? "";
  const fence = FENCE.exec(line);
  if (fence) return fenceEnd(lines, i + 1, fence[2] ?? "```");
  if (HEADING.test(line) || RULE.test(line)) return i + 1;
  let k = i + 1;
  if (QUOTE.test(line)) {
    while (k < lines.length && QUOTE.test(lines[k] ?? "")) k++;
    return k;
  }
  const item = ITEM.exec(line);
  if (item) return listEnd(lines, i, item);
  if (isTable(line, lines[k])) {
    while (k < lines.length && (lines[k] ?? "").includes("|")) k++;
    return k;
  }
  while (k < lines.length && !blank(lines[k] ?? "") && !startsBlock(lines[k] ?? "", lines[k + 1])) k++;
  return k;
}

const ordered = (item: RegExpExecArray): boolean => /\d/.test(item[2] ?? "");

// A list goes on over blank lines as long as what follows is indented or an item of the same kind.
function listEnd(lines: string[], i: number, first: RegExpExecArray): number {
  const base = (first[1] ?? "").length;
  let end = i + 1;
  let gap = false;
  for (let k = i + 1; k < lines.length; k++) {
    const line = lines[k] ?? "";
    if (blank(line)) { gap = true; continue; }
    const item = RULE.test(line) ? null : ITEM.exec(line);
    const indent = line.length - line.trimStart().length;
    const belongs = item && (item[1] ?? "").length <= base + 1 ? ordered(item) === ordered(first) : indent > base;
    if (!belongs && (gap || item || startsBlock(line, lines[k + 1]))) break;
    const fence = indent > base ? FENCE.exec(line.trimStart()) : null;
    if (fence) k = fenceEnd(lines.map((l) => l.trimStart()), k + 1, fence[2] ?? "```") - 1;
    gap = false;
    end = k + 1;
  }
  return end;
}

export function splitBlocks(source: string): string[] {
  const lines = source.split(/\r\n|\n|\r/);
  const blocks: string[] = [];
  for (let i = 0; i < lines.length;) {
    if (blank(lines[i] ?? "")) { i++; continue; }
    const end = blockEnd(lines, i);
    blocks.push(lines.slice(i, end).join("\n"));
    i = end;
  }
  return blocks;
}

function drawFence(lines: string[], fence: RegExpExecArray): HTMLElement {
  const end = fenceEnd(lines, 1, fence[2] ?? "```");
  const closed = end <= lines.length && end > 1 && /^ {0,3}[`~]{3,}[ \t]*$/.test(lines[end - 1] ?? "");
  const indent = (fence[1] ?? "").length;
  const code = lines.slice(1, closed ? end - 1 : end).map((l) => l.replace(new RegExp(`^ {0,${indent}}`), "")).join("\n");
  const name = (fence[3] ?? "").trim().split(/\s/)[0] ?? "";
  return h("figure", {}, h("figcaption", {}, h("span", {}, name || "text"), copyButton("Copy this code", () => code)),
    h("pre", { tabindex: "0" }, h("code", {}, code)));
}

function drawList(lines: string[], first: RegExpExecArray, depth: number): HTMLElement {
  const base = (first[1] ?? "").length;
  const items: string[][] = [];
  for (let k = 0, until = 0; k < lines.length; k++) {
    const line = lines[k] ?? "";
    const item = k < until ? null : ITEM.exec(line);
    const strip = base + (first[0] ?? "").length - (first[1] ?? "").length;
    if (item && (item[1] ?? "").length <= base + 1) {
      items.push([line.slice(item[0].length)]);
      const fence = FENCE.exec(line.slice(item[0].length));
      if (fence) until = fenceEnd(lines.map((l) => l.trimStart()), k + 1, fence[2] ?? "```");
      continue;
    }
    const fence = k < until ? null : FENCE.exec(line.trimStart());
    if (fence) until = fenceEnd(lines.map((l) => l.trimStart()), k + 1, fence[2] ?? "```");
    items[items.length - 1]?.push(line.replace(new RegExp(`^ {0,${strip}}`), ""));
  }
  const isOrdered = ordered(first);
  const list = isOrdered ? h("ol", {}) : h("ul", {});
  if (isOrdered && parseInt(first[2] ?? "1", 10) !== 1) list.setAttribute("start", String(parseInt(first[2] ?? "1", 10)));
  for (const item of items) {
    const li = h("li", {});
    const blocks = splitBlocks(item.join("\n"));
    blocks.forEach((block, i) => {
      const e = drawBlock(block, depth + 1);
      // A tight item is its text, without a paragraph around.
      if (e.tagName === "P" && (i === 0 && blocks.length <= 2)) li.append(...Array.from(e.childNodes));
      else li.append(e);
    });
    list.append(li);
  }
  return list;
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, "|"));
}

function drawTable(lines: string[]): HTMLElement {
  const aligns = cells(lines[1] ?? "").map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : ""));
  const row = (line: string, tag: "th" | "td"): HTMLElement => {
    const tr = h("tr", {});
    cells(line).slice(0, aligns.length).forEach((c, i) => {
      const cell = h(tag, {}, ...inline(c));
      const align = aligns[i];
      if (align) cell.style.textAlign = align;
      tr.append(cell);
    });
    return tr;
  };
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, row(lines[0] ?? "", "th")),
    h("tbody", {}, ...lines.slice(2).map((l) => row(l, "td")))));
}

const HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"] as const;

export function drawBlock(source: string, depth = 0): HTMLElement {
  const lines = source.split("\n");
  const line = lines[0] ?? "";
  const fence = FENCE.exec(line);
  if (fence) return drawFence(lines, fence);
  const heading = HEADING.exec(line);
  if (heading) return h(HEADINGS[(heading[1] ?? "#").length - 1] ?? "h6", {}, ...inline(heading[2] ?? ""));
  if (RULE.test(line)) return h("hr", {});
  if (depth < DEPTH) {
    if (QUOTE.test(line)) {
      const inner = lines.map((l) => l.replace(QUOTE, "")).join("\n");
      return h("blockquote", {}, ...splitBlocks(inner).map((b) => drawBlock(b, depth + 1)));
    }
    const item = ITEM.exec(line);
    if (item) return drawList(lines, item, depth);
  }
  if (isTable(line, lines[1])) return drawTable(lines);
  return h("p", {}, ...inline(lines.map((l) => l.trim()).join("\n")));
}

// A piece of the page that follows a growing text.
export class MarkdownView {
  private drawn: string[] = [];
  constructor(readonly root: HTMLElement) { root.classList.add("md"); }

  set(source: string): void {
    const blocks = splitBlocks(source);
    let same = 0;
    while (same < blocks.length && blocks[same] === this.drawn[same]) same++;
    while (this.root.childElementCount > same) this.root.lastElementChild?.remove();
    for (const block of blocks.slice(same)) this.root.append(drawBlock(block));
    this.drawn = blocks;
  }
}
