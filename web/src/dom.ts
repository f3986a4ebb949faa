// SPDX-License-Identifier: Apache-2.0
// dom.ts - building elements. Text always becomes a text node: nothing here or anywhere in the page
// parses HTML, so what a model or a user writes cannot become markup.

type Child = Node | string;
type Attributes = Record<string, string | boolean>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) e.setAttribute(name, "");
    else if (value !== false) e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

export function button(text: string, label: string, act: () => void, className = ""): HTMLButtonElement {
  const b = h("button", { type: "button", class: className, title: label, "aria-label": label }, text);
  b.addEventListener("click", act);
  return b;
}

// The clipboard needs a secure context; a page served from another machine over http has none, so the
// older way follows.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const b = button("Copy", label, async () => {
    b.textContent = (await copyText(text())) ? "Copied" : "Not allowed";
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  });
  return b;
}
