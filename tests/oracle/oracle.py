# SPDX-License-Identifier: Apache-2.0
"""Shared by the golden makers: the float32 oracle, weight naming, the GGUF row order, writing.

The oracle is transformers' own model with eager attention in float32 on the DEQUANTISED weights, so
that a golden says what exact arithmetic on the stored bytes gives; float64 beside it tells how much
of a difference float32 itself makes.
"""
import hashlib
import importlib.metadata
import json
import os
import platform

import numpy as np
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)

# safetensors name (without "model.layers.N.") -> GGUF name (without "blk.N.")
DENSE_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.bias": "attn_output.bias",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
LAYER_NAMES = {  # the same tensor name stands for another place in a Gemma block
    "llama": {**DENSE_NAMES, "post_attention_layernorm.weight": "ffn_norm.weight"},
    "gemma3_text": {
        **DENSE_NAMES,
        "self_attn.q_norm.weight": "attn_q_norm.weight",
        "self_attn.k_norm.weight": "attn_k_norm.weight",
        "post_attention_layernorm.weight": "post_attention_norm.weight",
        "pre_feedforward_layernorm.weight": "ffn_norm.weight",
        "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    },
}
TOP_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(name, family="llama"):
    """model.layers.3.mlp.up_proj.weight -> blk.3.ffn_up.weight"""
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[family][rest]}"


def hf_name(name, family="llama"):
    """blk.3.ffn_up.weight -> model.layers.3.mlp.up_proj.weight"""
    for hf, gg in TOP_NAMES.items():
        if gg == name:
            return hf
    _, layer, rest = name.split(".", 2)
    return next(f"model.layers.{layer}.{hf}" for hf, gg in LAYER_NAMES[family].items() if gg == rest)


def rotary_heads(name, cfg):
    """Heads whose rows the GGUF reorders in this tensor, 0 for none. safetensors pairs component i
    with i + D/2; llama-architecture GGUFs pair 2i with 2i + 1, so q and k rows are stored in
    another order."""
    if ".q_proj." in name:
        return cfg["num_attention_heads"]
    if ".k_proj." in name:
        return cfg["num_key_value_heads"]
    return 0


def to_gguf_rows(w, heads):
    """Rows of each head from (half, pair) to (pair, half): row i -> 2i, row i + D/2 -> 2i + 1."""
    if not heads:
        return w
    pairs = w.shape[0] // heads // 2
    return np.ascontiguousarray(w.reshape(heads, 2, pairs, -1).swapaxes(1, 2)).reshape(w.shape)


def to_hf_rows(w, heads):
    """The inverse of to_gguf_rows."""
    if not heads:
        return w
    pairs = w.shape[0] // heads // 2
    return np.ascontiguousarray(w.reshape(heads, pairs, 2, -1).swapaxes(1, 2)).reshape(w.shape)


def build(cfg, weights, dtype=torch.float32):
    """A model with exactly these float weights (safetensors names); refuses a missing or extra one.

    Gemma multiplies its embedding by sqrt(width) in the type of its weights. Here these are float32
    whatever the model was made in, so the factor is rounded as that type would: cfg["dtype"]."""
    kinds = {"llama": (LlamaForCausalLM, LlamaConfig), "gemma3_text": (Gemma3ForCausalLM, Gemma3TextConfig)}
    make, config = kinds[cfg["model_type"]]
    # dtype says what the file holds; torch would build the model in it
    model = make(config(**{k: v for k, v in cfg.items() if k != "dtype"}, attn_implementation="eager")).to(dtype)
    if cfg["model_type"] == "gemma3_text":
        embed = model.model.embed_tokens
        made = getattr(torch, cfg["dtype"])
        embed.embed_scale = torch.tensor(cfg["hidden_size"] ** 0.5, dtype=made).to(dtype)
    state = {k: torch.from_numpy(np.array(v)).to(dtype) for k, v in weights.items()}
    if cfg["tie_word_embeddings"]:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model.eval()


@torch.no_grad()
def logits(cfg, weights, tokens, dtype=torch.float32):
    """[tokens, vocabulary] in one forward pass, no cache."""
    out = build(cfg, weights, dtype)(torch.tensor([tokens]), use_cache=False).logits[0]
    return out.numpy()


def relative(a, b):
    """Largest difference at any position, relative to the largest |b| at that position."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float((np.abs(a - b).max(axis=1) / np.abs(b).max(axis=1)).max())


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def versions(*packages):
    out = {"python": platform.python_version()}
    for p in packages:
        out[p] = importlib.metadata.version(p)
    return out


def write_json(path, value):
    """Objects indented, flat lists on one line; published by rename."""
    def put(v, pad):
        if isinstance(v, dict) and v:
            inner = pad + "  "
            return "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {put(x, inner)}"
                                      for k, x in v.items()) + f"\n{pad}}}"
        if isinstance(v, list) and v and isinstance(v[0], (dict, list)):
            inner = pad + "  "
            return "[\n" + ",\n".join(inner + put(x, inner) for x in v) + f"\n{pad}]"
        return json.dumps(v, ensure_ascii=False)
    tmp = f"{path}.{os.getpid()}"
    with open(tmp, "w", encoding="utf-8") as f:
        f.write(put(value, "") + "\n")
    os.replace(tmp, path)
