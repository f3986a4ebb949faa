# SPDX-License-Identifier: Apache-2.0
"""Tiny seeded Gemma 3 models, as GGUF, safetensors and MLX files, with the oracle's logits.

    python tests/oracle/tiny_gemma3.py [--out tests/golden/gemma3] [--only NAME ...]

Folders are made as tiny_llama.py makes them. The window is 24, the tokens are 133: keys fall out of it
in every model, in the middle of 64-token blocks and at both ends of a 128-key span. Gains lie around
one, so that a forgotten "plus one" shows.
"""
import argparse
import os

import gguf
import mlx.core as mx
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from gguf import quants
from safetensors.torch import save_file as save_torch

import oracle
import tiny_llama as tiny
from tiny_llama import VOCAB

WINDOW = 24


def config(hidden, ffn, heads, kv, head_dim, layers, **more):
    cfg = {
        "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "dtype": "bfloat16",
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": hidden, "intermediate_size": ffn,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
        "head_dim": head_dim, "query_pre_attn_scalar": head_dim, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
        "rope_scaling": None, "attention_bias": False, "sliding_window": WINDOW,
        "tie_word_embeddings": True, "vocab_size": VOCAB,
        "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0,
    }
    cfg.update(more)
    return cfg


LINEAR = {"rope_type": "linear", "factor": 8.0}
TYPES = ["full_attention", "sliding_attention", "sliding_attention"]
PATTERN = config(48, 64, 4, 2, 16, 7, rope_scaling=LINEAR)  # five slide, one is full, one slides
BLOCK32 = config(64, 96, 4, 1, 32, 2, sliding_window_pattern=2)
BLOCK256 = config(256, 256, 2, 1, 128, 2, sliding_window_pattern=2)
ODD = config(40, 36, 4, 4, 10, 2, sliding_window_pattern=2)
CAPPED = config(48, 64, 4, 2, 16, 2, sliding_window_pattern=2, final_logit_softcapping=1.5)
BASE = config(48, 64, 4, 2, 16, 2, sliding_window_pattern=2, rope_local_base_freq=300.0)
ALL_FULL = config(48, 64, 4, 2, 16, 2, sliding_window_pattern=1)
DEEP = config(16, 16, 4, 2, 8, 62, query_pre_attn_scalar=4)  # as 27B: the scale is of width / heads
LISTED = config(48, 64, 4, 4, 16, 3, layer_types=TYPES, query_pre_attn_scalar=24, dtype="float32",
                rope_scaling=LINEAR)
UNTIED = config(48, 64, 4, 2, 16, 3, layer_types=TYPES, tie_word_embeddings=False, dtype="float16")
WRAPPED = config(48, 64, 8, 4, 16, 3, layer_types=TYPES, dtype="float16", rope_scaling=LINEAR)
AFFINE = config(64, 128, 4, 2, 32, 2, sliding_window_pattern=2)


def shapes(cfg):
    c, d = cfg["hidden_size"], cfg["head_dim"]
    out = {}
    for name, shape in tiny.shapes(dict(cfg, mlp_bias=False)).items():
        out[name] = shape
        if name.endswith("post_attention_layernorm.weight"):
            p = name.removesuffix("post_attention_layernorm.weight")
            out[p + "pre_feedforward_layernorm.weight"] = (c,)
            out[p + "post_feedforward_layernorm.weight"] = (c,)
            out[p + "self_attn.q_norm.weight"] = (d,)
            out[p + "self_attn.k_norm.weight"] = (d,)
    return out


def draw(cfg):
    """Float weights; norms are what safetensors hold, the gain minus one, in 1/64ths. Many layers add
    little each, else rounding grows from layer to layer until float32 itself is off."""
    out = {}
    for name, shape in shapes(cfg).items():
        rng = tiny.generator("gemma3", name, shape)
        if len(shape) == 1 and cfg["num_hidden_layers"] > 8 and ".post_" in name:
            out[name] = (rng.integers(-60, -55, shape) / 64.0).astype(np.float32)
        elif len(shape) == 1:
            out[name] = (rng.integers(-32, 33, shape) / 64.0).astype(np.float32)
        else:
            out[name] = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    return out


def write_gguf(folder, cfg, kind):
    w = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "gemma3")
    w.add_name("tiny random gemma")
    tiny.add_shape(w, cfg)
    w.add_rope_freq_base(cfg["rope_theta"])
    w.add_layer_norm_rms_eps(cfg["rms_norm_eps"])
    period = cfg.get("sliding_window_pattern", 6)
    if period != 1:
        w.add_sliding_window(cfg["sliding_window"])
    if period not in (1, 6):
        w.add_sliding_window_pattern(period)
    if cfg["rope_local_base_freq"] != 10000.0:
        w.add_rope_freq_base_swa(cfg["rope_local_base_freq"])
    if cfg["rope_scaling"]:
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(cfg["rope_scaling"]["factor"])
    if cap := cfg.get("final_logit_softcapping"):
        w.add_final_logit_softcapping(cap)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tiny.BYTE_TOKENS)
    w.add_token_types([3, 3] + [1] * (VOCAB - 2))
    w.add_token_merges([f"{a} {b}" for a, b in tiny.MERGES])
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_add_bos_token(False)
    used = {}
    for name, value in draw(cfg).items():
        if value.ndim == 1:
            w.add_tensor(oracle.gguf_name(name, "gemma3_text"), value + 1)
            used[name] = value
        else:
            raw, _, used[name] = tiny.encode(name, value, kind, 0)
            w.add_tensor(oracle.gguf_name(name, "gemma3_text"), raw, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return used


def per_type(cfg):
    """The config as transformers 5 writes it: one rope object a kind of layers."""
    cfg = dict(cfg)
    full = dict(cfg.pop("rope_scaling") or {"rope_type": "default"}, rope_theta=cfg.pop("rope_theta"))
    local = {"rope_type": "default", "rope_theta": cfg.pop("rope_local_base_freq")}
    return dict(cfg, rope_parameters={"full_attention": full, "sliding_attention": local})


def inside(cfg):
    """The config of a multimodal checkpoint; what it leaves out there has its default."""
    text = {k: v for k, v in cfg.items() if k not in ("architectures", "dtype", "eos_token_id",
                                                      "num_attention_heads", "num_key_value_heads")}
    return {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
            "torch_dtype": cfg["dtype"], "eos_token_id": [1, 7], "mm_tokens_per_image": 4,
            "text_config": text, "vision_config": {"hidden_size": 8, "num_hidden_layers": 1}}


VISION = {"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": (8, 8),
          "vision_tower.vision_model.post_layernorm.bias": (8,),
          "multi_modal_projector.mm_input_projection_weight": (8, 48)}


def write_safetensors(folder, cfg, shape_config=None, rename=str, extra=None):
    dtype = getattr(torch, cfg["dtype"])
    tensors = {k: torch.from_numpy(v).to(dtype) for k, v in draw(cfg).items()}
    used = {k: v.to(torch.float32).numpy() for k, v in tensors.items()}
    tensors = {rename(k): v for k, v in tensors.items()}
    tensors.update({k: torch.zeros(s, dtype=dtype) for k, s in (extra or {}).items()})
    oracle.write_json(os.path.join(folder, "config.json"), shape_config(cfg) if shape_config else cfg)
    tiny.write_tokenizer(folder)
    save_torch(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    return used


def plans():
    out = {}

    def add_gguf(name, cfg, why, kind=T.F16):
        out[name] = (cfg, lambda folder: write_gguf(folder, cfg, kind), why)

    def add_st(name, cfg, why, *more):
        out[name] = (cfg, lambda folder: write_safetensors(folder, cfg, *more), why)

    add_gguf("gguf-bf16", PATTERN, "every sixth layer full and stretched; the factor of the embedding", T.BF16)
    add_gguf("gguf-q4_0", BLOCK32, "one KV head, heads wider than the model", T.Q4_0)
    add_gguf("gguf-q8_0", BLOCK32, "embedding rows in blocks", T.Q8_0)
    add_gguf("gguf-q4_k", BLOCK256, "super-blocks, head size 128", T.Q4_K)
    add_gguf("gguf-f32-odd", ODD, "widths 40 and 36, head size 10, as many KV heads as heads", T.F32)
    add_gguf("gguf-f16-softcap", CAPPED, "final_logit_softcapping")
    add_gguf("gguf-f16-local-base", BASE, "rope.freq_base_swa")
    add_gguf("gguf-f16-full", ALL_FULL, "no window at all")
    add_gguf("gguf-f16-deep", DEEP, "62 layers: the scale of the largest model")
    add_st("st-bf16", PATTERN, "no layer_types, rope_scaling")
    add_st("st-f32", LISTED, "layer_types, rope_parameters per kind of layers, query_pre_attn_scalar", per_type)
    add_st("st-f16-untied", UNTIED, "lm_head.weight, factor in float16")
    add_st("st-f16-inside", WRAPPED, "text part of a multimodal checkpoint, vision left out; default heads",
           inside, lambda k: "language_model." + k, VISION)
    add_st("st-f16-inside-new", WRAPPED, "the same with the names that newer files carry", inside,
           lambda k: k.replace("model.", "model.language_model.", 1), {f"model.{k}": s for k, s in VISION.items()})
    out["mlx-b4-g32"] = (AFFINE, lambda folder: write_mlx(folder, AFFINE), "affine, as mlx-lm runs it")
    return out


def write_mlx(folder, cfg):
    tiny_draw, tiny.draw = tiny.draw, draw
    try:
        return tiny.write_mlx(folder, cfg, 4, 32, mx.bfloat16)
    finally:
        tiny.draw = tiny_draw


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default=os.path.join(here, "..", "golden", "gemma3"))
    ap.add_argument("--only", nargs="+", help="names; the others, and index.json, stay as they are")
    args = ap.parse_args()
    mx.set_default_device(mx.cpu)
    tiny.make_all(args.out, plans(), args.only, "tiny_gemma3.py")


if __name__ == "__main__":
    main()
