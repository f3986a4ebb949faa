// SPDX-License-Identifier: Apache-2.0
// inline.ts - emphasis, code and links inside one block. One walk from left to right; a mark without its
// partner stays text. Links go to http, https and mailto only, so no answer can carry a script; images
// are links as well: the page loads nothing that a model names.
import { h } from "./dom";

const LINK = /^(!?)\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))*)>?(?:\s+["'(][^"')]*["')])?\s*\)/;
const BARE = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,:;!?)\]*_~]/;
const ANGLE = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/;
const MARKS = ["***", "**", "*", "___", "__", "_", "~~"] as const;
const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const DEPTH = 8;

export function safeHref(address: string): string | null {
  const trimmed = address.replace(/[\u0000-\u0020]+/g, "");
  return /^(?:https?:\/\/|mailto:)/i.test(trimmed) ? trimmed : null;
}

function link(address: string, children: (Node | string)[]): Node[] | null {
  const href = safeHref(address);
  if (href === null) return null;
  return [h("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children)];
}

const isWord = (c: string | undefined): boolean => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const isSpace = (c: string | undefined): boolean => c === undefined || /\s/.test(c);

// Where the closing mark starts, or -1. Code spans and escapes in between are stepped over.
function closing(s: string, from: number, mark: string): number {
  for (let i = from; i < s.length; i++) {
    if (s[i] === "\\") { i++; continue; }
    if (s[i] === "`") {
      const run = /^`+/.exec(s.slice(i))?.[0] ?? "`";
      const end = s.indexOf(run, i + run.length);
      i = end < 0 ? i + run.length - 1 : end + run.length - 1;
      continue;
    }
    if (!s.startsWith(mark, i) || isSpace(s[i - 1]) || i === from) continue;
    const c = mark[0];
    if (mark.length < 3 && s[i + mark.length] === c) { // a longer run is another mark
      let run = i;
      while (s[run] === c) run++;
      if (run - i !== 3) { i = run - 1; continue; }
      i = run - mark.length;
    }
    if (c === "_" && isWord(s[i + mark.length])) continue;
    return i;
  }
  return -1;
}

function wrap(mark: string, children: Node[]): Node {
  if (mark === "~~") return h("del", {}, ...children);
  if (mark.length === 3) return h("strong", {}, h("em", {}, ...children));
  return mark.length === 2 ? h("strong", {}, ...children) : h("em", {}, ...children);
}

interface Found { nodes: Node[]; n: number }

function special(s: string, i: number, depth: number): Found | null {
  const c = s[i];
  const rest = s.slice(i, i + 4096);
  if (c === "\n") return { nodes: [h("br", {})], n: 1 };
  if (c === "\\") {
    const m = ESCAPED.exec(rest);
    return m ? { nodes: [document.createTextNode(m[1] ?? "")], n: 2 } : null;
  }
  if (c === "`") {
    const run = /^`+/.exec(rest)?.[0] ?? "`";
    const end = s.indexOf(run, i + run.length);
    if (end < 0) return { nodes: [document.createTextNode(run)], n: run.length };
    const code = s.slice(i + run.length, end).replace(/\n/g, " ");
    const inner = /^ .* $/.test(code) && code.trim() !== "" ? code.slice(1, -1) : code;
    return { nodes: [h("code", {}, inner)], n: end + run.length - i };
  }
  if (c === "<") {
    const m = ANGLE.exec(rest);
    const a = m ? link(m[1] ?? "", [m[1] ?? ""]) : null;
    return m && a ? { nodes: a, n: m[0].length } : null;
  }
  if (c === "[" || (c === "!" && s[i + 1] === "[")) {
    const m = LINK.exec(rest);
    const a = m ? link(m[3] ?? "", depth < DEPTH ? inline(m[2] || m[3] || "", depth + DEPTH) : [m[2] ?? ""]) : null;
    return m && a ? { nodes: a, n: m[0].length } : null;
  }
  if (c === "h" && !isWord(s[i - 1]) && depth < DEPTH) {
    const m = BARE.exec(rest);
    const a = m ? link(m[0], [m[0]]) : null;
    return m && a ? { nodes: a, n: m[0].length } : null;
  }
  return depth % DEPTH < DEPTH - 1 ? emphasis(s, i, depth) : null;
}

function emphasis(s: string, i: number, depth: number): Found | null {
  for (const mark of MARKS) {
    if (!s.startsWith(mark, i)) continue;
    if (isSpace(s[i + mark.length]) || s[i + mark.length] === mark[0]) return null;
    if (mark[0] === "_" && isWord(s[i - 1])) return null;
    const end = closing(s, i + mark.length, mark);
    if (end < 0) continue;
    return { nodes: [wrap(mark, inline(s.slice(i + mark.length, end), depth + 1))], n: end + mark.length - i };
  }
  return null;
}

// Depth counts nesting; DEPTH is added inside a link, which holds no other link.
export function inline(s: string, depth = 0): Node[] {
  const out: Node[] = [];
  let plain = "";
  for (let i = 0; i < s.length;) {
    const c = s[i] ?? "";
    const found = "\n\\`<[!h*_~".includes(c) ? special(s, i, depth) : null;
    if (!found) {
      // A run of marks that opens nothing is text as a whole, so that its tail opens nothing either.
      const run = c === "*" || c === "_" || c === "~" ? (new RegExp(`^\\${c}+`).exec(s.slice(i, i + 64))?.[0] ?? c) : c;
      plain += run;
      i += run.length;
      continue;
    }
    if (plain !== "") out.push(document.createTextNode(plain));
    plain = "";
    out.push(...found.nodes);
    i += found.n;
  }
  if (plain !== "") out.push(document.createTextNode(plain));
  return out;
}
