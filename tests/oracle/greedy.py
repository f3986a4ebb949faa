# SPDX-License-Identifier: Apache-2.0
"""Greedy continuations with the gap between the two best logits at each step, for the makers of goldens
of real models.

Per step: the id, the runner-up and the gap between their logits. Every step is checked by a second pass
over the whole sequence without a cache: `recheck` is the largest change of a gap there, so a gap below
it decides nothing.
"""
import numpy as np
import torch

N_STEPS = 100

COMMON_PROMPTS = [  # that no model's own markup is part of
    "def mean(values):\n    \"\"\"Arithmetic mean of a list of numbers.\"\"\"\n",
    "Old Marta opened the mill before sunrise, and the first thing she heard was",
    "A recipe for bread:\n1. Mix 500 g of flour with 350 ml of water.\n2.",
    "La rivi\u00e8re descend de la montagne et",
    "12 + 30 = 42\n7 + 8 = 15\n100 + 250 =",
    "{\"name\": \"Ada\", \"born\": 1815, \"fields\": [\"mathematics\",",
    "Weather \u2600\ufe0f in \u6771\u4eac (Tokyo) during July:",
]


def top_two(row):
    """(best id, runner-up id, gap of their logits); ties go to the lower id."""
    first = int(row.argmax())
    rest = row.copy()
    rest[first] = -np.inf
    second = int(rest.argmax())
    return first, second, float(row[first]) - float(row[second])


def log_probabilities(row, n=5):
    z = row.astype(np.float64)
    z -= z.max() + np.log(np.exp(z - z.max()).sum())
    best = np.argsort(-z, kind="stable")[:n]
    return [{"id": int(i), "logprob": round(float(z[i]), 6)} for i in best]


def run_prompt(text, ids, step, whole, decode):
    """step(new ids or None to start over) -> logits of the last one; whole(ids) -> all logits."""
    step(None)
    row = step(ids)
    out = {"text": text, "prompt": ids, "first_step": log_probabilities(row),
           "greedy": [], "runner_up": [], "gap": []}
    for _ in range(N_STEPS):
        first, second, gap = top_two(row)
        out["greedy"].append(first)
        out["runner_up"].append(second)
        out["gap"].append(round(gap, 5))
        row = step([first])
    again = [top_two(r) for r in whole(ids + out["greedy"])[-N_STEPS - 1:-1]]
    out["recheck"] = float(f"{max(abs(a[2] - g) for a, g in zip(again, out['gap'])):.1e}")
    for i, (a, b) in enumerate(zip(again, out["greedy"])):
        assert a[0] == b or out["gap"][i] < 1e-3, (text, i, a, b)
    out["continuation"] = decode(out["greedy"])
    return out


def run_all(prompts, tokenizer, step, whole):
    results = []
    for text in prompts:
        r = run_prompt(text, tokenizer.encode(text).ids, step, whole,
                       lambda ids: tokenizer.decode(ids, skip_special_tokens=False))
        print(f"  {len(r['prompt']):3} + {N_STEPS}, smallest gap {min(r['gap']):.4f}, recheck {r['recheck']:.0e}: "
              f"{r['continuation'][:60]!r}", flush=True)
        results.append(r)
    return results


def summary(results):
    gaps = np.array([r["gap"] for r in results])
    return {"steps": int(gaps.size), "gaps_below_0.001": int((gaps < 1e-3).sum()),
            "gaps_below_0.01": int((gaps < 1e-2).sum())}


def torch_runner(model):
    """step and whole, as run_all takes them, of a transformers model; whole gives the last N_STEPS + 1
    rows only."""
    state = {}

    @torch.no_grad()
    def step(ids):
        if ids is None:
            state["cache"] = None
            return None
        out = model(torch.tensor([ids]), past_key_values=state["cache"], use_cache=True,
                    logits_to_keep=1)
        state["cache"] = out.past_key_values
        return out.logits[0, -1].numpy()

    @torch.no_grad()
    def whole(ids):
        return model(torch.tensor([ids]), use_cache=False, logits_to_keep=N_STEPS + 1).logits[0].numpy()

    return step, whole
