// SPDX-License-Identifier: Apache-2.0
// settings.ts - the settings dialog. An empty field means: the server's or the model's own value.
import { button, h } from "./dom";
import { defaults, type Settings } from "./store";

interface Field { name: keyof Settings; label: string; hint: string; empty?: string; min?: number; max?: number; whole?: boolean }

const FIELDS: Field[] = [
  { name: "temperature", label: "Temperature", hint: "0 always takes the likeliest word", min: 0, max: 10 },
  { name: "top_p", label: "Top p", hint: "share of likely words to draw from, 0 to 1", min: 0, max: 1 },
  { name: "max_tokens", label: "Max tokens", hint: "length of an answer at most", empty: "as the server says", min: 1, max: 1e6, whole: true },
  { name: "seed", label: "Seed", hint: "the same seed gives the same answer", empty: "a random one", min: 0, max: Number.MAX_SAFE_INTEGER, whole: true },
];

// What is wrong with a value, or null.
export function complaint(field: Field, value: string): string | null {
  if (value.trim() === "") return null;
  const n = Number(value);
  if (!Number.isFinite(n) || (field.whole && !Number.isInteger(n))) return `${field.label}: ${field.whole ? "a whole number" : "a number"}, please`;
  if (n < (field.min ?? -Infinity) || n > (field.max ?? Infinity)) return `${field.label}: from ${field.min} to ${field.max}`;
  return null;
}

export const asNumber = (value: string): number | undefined => (value.trim() === "" ? undefined : Number(value));

// Opens the dialog; onSave gets the new settings.
export function openSettings(now: Settings, onSave: (s: Settings) => void): void {
  const inputs = new Map<keyof Settings, HTMLInputElement | HTMLTextAreaElement>();
  const labelled = (name: keyof Settings, label: string, hint: string, e: HTMLInputElement | HTMLTextAreaElement): HTMLElement => {
    e.id = `set-${name}`;
    e.value = now[name];
    inputs.set(name, e);
    return h("div", {}, h("label", { for: e.id }, label), e, h("small", {}, hint));
  };
  const bad = h("p", { class: "bad", role: "alert" });
  const rows = h("div", { class: "row" }, ...FIELDS.map((f) =>
    labelled(f.name, f.label, f.hint, h("input", { inputmode: "decimal", autocomplete: "off", placeholder: f.empty ?? "model's own" }))));
  const system = labelled("system", "System prompt", "goes before every chat; empty: none", h("textarea", { rows: "4" }));
  const key = labelled("key", "API key", "only if the server was started with --api-key", h("input", { type: "password", autocomplete: "off" }));
  const form = h("form", { method: "dialog" }, h("h2", { id: "set-title" }, "Settings"), rows, system, key, bad,
    h("div", { class: "ends" },
      button("Reset", "Empty all fields", () => { for (const [name, e] of inputs) e.value = defaults[name]; }, "plain"),
      button("Cancel", "Close without saving", () => dialog.close()),
      h("button", { type: "submit", class: "primary" }, "Save")));
  const dialog = h("dialog", { "aria-labelledby": "set-title" }, form);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const wrong = FIELDS.map((f) => complaint(f, inputs.get(f.name)?.value ?? "")).find((c) => c !== null);
    if (wrong) { bad.textContent = wrong; return; }
    const next = { ...now };
    for (const [name, input] of inputs) next[name] = name === "system" ? input.value : input.value.trim();
    onSave(next);
    dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
