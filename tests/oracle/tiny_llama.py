# SPDX-License-Identifier: Apache-2.0
"""Tiny seeded Llama-shaped models in every weight format, with the oracle's logits.

    python tests/oracle/tiny_llama.py [--out tests/golden/llama] [--only NAME ...]

Each model is a folder: the model as its container stores it, golden.json (tokens, shape, checksums,
versions, what is special) and logits.bin: float32 little-endian [tokens, vocabulary], all positions
of one forward pass. Folders whose weights are equal share one logits file, so golden.json names it
relative to its own folder. index.json lists the folders.

What each folder is there for stands in its "why". Sizes are the smallest that still have tails:
odd block counts in a row, a vocabulary of 101 (prime), and 133 tokens, which pass a 64-token block
twice and a 128-key span once. q and k weights are larger than usual, so that attention is
peaked and a wrong mask, rotation or span shows in the logits.
"""
import argparse
import hashlib
import json
import os
import shutil
import tempfile

import gguf
import mlx.core as mx
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from gguf import quants
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import oracle

N_TOKENS, VOCAB = 133, 101
SEED = 20260131


def config(hidden, ffn, heads, kv, head_dim, **more):
    cfg = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": 2,
        "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head_dim,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "rope_scaling": None, "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": True, "vocab_size": VOCAB, "bos_token_id": 0, "eos_token_id": 1,
    }
    cfg.update(more)
    return cfg


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
PLAIN = config(64, 96, 4, 2, 16)
ODD = config(72, 100, 4, 2, 18)          # no width is a multiple of 16
BLOCK32 = config(96, 160, 6, 2, 16)      # three and five blocks a row, three query heads a KV head
BLOCK256 = config(256, 512, 4, 1, 64, num_hidden_layers=1)  # one and two super-blocks a row
MIXED256 = config(256, 256, 4, 1, 64, tie_word_embeddings=False)
MLX_G32 = config(128, 128, 4, 2, 32, num_hidden_layers=1)
MLX_G64 = config(128, 128, 4, 2, 32)
MLX_G128 = config(128, 256, 4, 2, 32, num_hidden_layers=1)  # two groups of 128 a row in down_proj
WIDE = config(64, 96, 2, 1, 64)          # head size 64, so q is wider than the model
BIAS = config(64, 96, 4, 2, 16, attention_bias=True)
UNTIED = config(64, 96, 4, 2, 16, tie_word_embeddings=False)
STRETCHED = config(64, 96, 4, 2, 16, rope_theta=500000.0, rope_scaling=LLAMA3)
LINEAR = config(64, 96, 4, 2, 16, rope_scaling={"rope_type": "linear", "factor": 4.0})
EPSILON = config(64, 96, 4, 4, 16, rms_norm_eps=0.05)


def generator(*key):
    digest = hashlib.sha256(repr((SEED, *key)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))


def tokens_of(cfg):
    return [0] + generator("tokens").integers(2, cfg["vocab_size"], N_TOKENS - 1).tolist()


def shapes(cfg):
    """safetensors name -> shape; [rows out, columns in] for matrices."""
    c, f, d = cfg["hidden_size"], cfg["intermediate_size"], cfg["head_dim"]
    h, k = cfg["num_attention_heads"], cfg["num_key_value_heads"]
    out = {"model.embed_tokens.weight": (cfg["vocab_size"], c)}
    for layer in range(cfg["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        out[p + "input_layernorm.weight"] = (c,)
        for name, rows, cols in (("q", h * d, c), ("k", k * d, c), ("v", k * d, c), ("o", c, h * d)):
            out[f"{p}self_attn.{name}_proj.weight"] = (rows, cols)
            if cfg["attention_bias"]:
                out[f"{p}self_attn.{name}_proj.bias"] = (rows,)
        out[p + "post_attention_layernorm.weight"] = (c,)
        out[p + "mlp.gate_proj.weight"] = (f, c)
        out[p + "mlp.up_proj.weight"] = (f, c)
        out[p + "mlp.down_proj.weight"] = (c, f)
    out["model.norm.weight"] = (c,)
    if not cfg["tie_word_embeddings"]:
        out["lm_head.weight"] = (cfg["vocab_size"], c)
    return out


def spread(name, shape):
    peaked = 1.5 if ".q_proj." in name or ".k_proj." in name else 1.0
    return peaked / np.sqrt(shape[-1])


def draw(cfg):
    """Float weights; norms and biases are multiples of 1/64 below 2, exact in f16 and bf16."""
    out = {}
    for name, shape in shapes(cfg).items():
        rng = generator(name, shape)
        if len(shape) == 1:
            steps = rng.integers(32, 97, shape) if name.endswith(".weight") else \
                rng.integers(-32, 33, shape)
            out[name] = (steps / 64.0).astype(np.float32)
        else:
            out[name] = (rng.standard_normal(shape) * spread(name, shape)).astype(np.float32)
    return out


# ---- GGUF -----------------------------------------------------------------------------------

# Per super-block format: bytes, offset of d, offset of dmin or None, and dmin / d such that values
# are centred (mean of q times mean of scale against mean of min).
SUPER = {
    T.Q2_K: (84, 80, 82, 1.5), T.Q3_K: (110, 108, None, 0), T.Q4_K: (144, 0, 2, 7.5),
    T.Q5_K: (176, 0, 2, 15.5), T.Q6_K: (210, 208, None, 0),
}


def put_f16(blocks, at, values):
    blocks[:, at:at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


def random_super_blocks(rng, shape, kind, std):
    """Valid super-blocks with every bit of scales and quants in use; only d and dmin are tame."""
    size, at_d, at_min, ratio = SUPER[kind]
    n = shape[0] * shape[1] // 256
    blocks = rng.integers(0, 256, (n, size), dtype=np.uint8)
    put_f16(blocks, at_d, np.full(n, 2.0**-10))
    if at_min is not None:
        put_f16(blocks, at_min, np.full(n, 2.0**-10 * ratio))
    unit = quants.dequantize(blocks.reshape(shape[0], -1), kind).std() * 2.0**10
    d = std / unit * rng.uniform(0.5, 1.5, n)
    if at_min is not None:
        put_f16(blocks, at_min, d * ratio)
    else:
        d = d * np.where(rng.random(n) < 0.25, -1.0, 1.0)
    put_f16(blocks, at_d, d)
    return blocks.reshape(shape[0], -1)


def encode(name, w, kind, heads):
    """(array for the writer, raw type, dequantised float32 in safetensors row order)"""
    if w.ndim == 1:
        rows = oracle.to_gguf_rows(w.reshape(-1, 1), heads).reshape(-1)
        return rows, None, w
    if kind in SUPER:
        raw = random_super_blocks(generator(name, w.shape, kind.name), w.shape, kind, spread(name, w.shape))
    else:
        raw = quants.quantize(oracle.to_gguf_rows(w, heads), kind)
    back = quants.dequantize(raw, kind).astype(np.float32)
    return raw, kind, oracle.to_hf_rows(back, heads)


BYTE_TOKENS = ["<s>", "</s>"] + [chr(c) for c in range(33, 127)] + \
    ["\u0120", "\u0120t", "he", "\u0120the", "in"]
MERGES = [("\u0120", "t"), ("h", "e"), ("\u0120t", "he"), ("i", "n")]
assert len(BYTE_TOKENS) == VOCAB


def rope_factors(cfg):
    """What a llama3-stretched GGUF stores instead of the four numbers: a divisor per frequency."""
    s = cfg["rope_scaling"]
    d = cfg["head_dim"]
    freq = cfg["rope_theta"] ** (-np.arange(0, d, 2, dtype=np.float64) / d)
    wave = 2 * np.pi / freq
    old = s["original_max_position_embeddings"]
    low, high = s["low_freq_factor"], s["high_freq_factor"]
    smooth = np.clip((old / wave - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - smooth) / s["factor"] + smooth)).astype(np.float32)


def add_shape(w, cfg):
    """What a GGUF file of any family says about its sizes."""
    w.add_context_length(cfg["max_position_embeddings"])
    w.add_embedding_length(cfg["hidden_size"])
    w.add_block_count(cfg["num_hidden_layers"])
    w.add_feed_forward_length(cfg["intermediate_size"])
    w.add_head_count(cfg["num_attention_heads"])
    w.add_head_count_kv(cfg["num_key_value_heads"])
    w.add_key_length(cfg["head_dim"])
    w.add_value_length(cfg["head_dim"])


def write_gguf(folder, cfg, kind_of, split=0):
    weights = draw(cfg)
    w = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "llama", split_max_tensors=split)
    w.add_name("tiny random llama")
    add_shape(w, cfg)
    w.add_rope_dimension_count(cfg["head_dim"])
    w.add_rope_freq_base(cfg["rope_theta"])
    w.add_layer_norm_rms_eps(cfg["rms_norm_eps"])
    w.add_vocab_size(cfg["vocab_size"])
    scaling = cfg["rope_scaling"] or {}
    if scaling.get("rope_type") == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(scaling["factor"])
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(BYTE_TOKENS)
    w.add_token_types([3, 3] + [1] * (VOCAB - 2))
    w.add_token_merges([f"{a} {b}" for a, b in MERGES])
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_add_bos_token(False)
    used = {}
    for name, value in weights.items():
        raw, kind, back = encode(name, value, kind_of(name), oracle.rotary_heads(name, cfg))
        w.add_tensor(oracle.gguf_name(name), raw, raw_dtype=kind)
        used[name] = back
    if scaling.get("rope_type") == "llama3":
        w.add_tensor("rope_freqs.weight", rope_factors(cfg))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return used


def all_of(kind):
    return lambda name: kind


def mixed_kinds(name):
    if "embed_tokens" in name:
        return T.Q8_0
    if "lm_head" in name or "down_proj" in name:
        return T.Q6_K
    if ".q_proj" in name:
        return T.Q4_0
    return {"k": T.Q5_K, "v": T.Q6_K, "o": T.F16}.get(name.split("_proj")[0][-1], T.Q4_K) \
        if "self_attn" in name else T.Q4_K


# ---- safetensors ----------------------------------------------------------------------------

def write_tokenizer(folder):
    t = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(BYTE_TOKENS)}, merges=MERGES))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(BYTE_TOKENS[:2])
    t.save(os.path.join(folder, "tokenizer.json"))


def write_config(folder, cfg, new_rope=False, **more):
    cfg = dict(cfg, **more)
    if new_rope:  # transformers 5 folds both rope entries into one
        scaling = cfg.pop("rope_scaling") or {"rope_type": "default"}
        cfg["rope_parameters"] = dict(scaling, rope_theta=cfg.pop("rope_theta"))
    oracle.write_json(os.path.join(folder, "config.json"), cfg)


def write_safetensors(folder, cfg, dtype, shards=1, new_rope=False):
    """The values of the GGUF of the same float type, in safetensors row order."""
    tensors = {k: torch.from_numpy(v).to(dtype) for k, v in draw(cfg).items()}
    write_config(folder, cfg, new_rope, torch_dtype=str(dtype).removeprefix("torch."))
    write_tokenizer(folder)
    names = list(tensors)
    if shards == 1:
        save_torch(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    else:
        place = {}
        for i in range(shards):
            part = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
            mine = names[i::shards]
            save_torch({n: tensors[n] for n in mine}, os.path.join(folder, part), {"format": "pt"})
            place.update({n: part for n in mine})
        total = sum(t.numel() * t.element_size() for t in tensors.values())
        oracle.write_json(os.path.join(folder, "model.safetensors.index.json"),
                          {"metadata": {"total_size": total}, "weight_map": {n: place[n] for n in names}})
    return {k: v.to(torch.float32).numpy() for k, v in tensors.items()}


def unpack_affine(packed, bits, cols):
    """Little-endian bit stream of a row -> integers; a second opinion on mlx's own unpacking."""
    stream = np.unpackbits(packed.view(np.uint8), axis=1, bitorder="little")
    fields = stream[:, :cols * bits].reshape(packed.shape[0], cols, bits)
    return (fields << np.arange(bits)).sum(axis=2)


def write_mlx(folder, cfg, bits, group, dtype, special=None):
    """special: safetensors module name -> (bits, group) that differ from the rest."""
    special = special or {}
    tensors, used, quantization = {}, {}, {"group_size": group, "bits": bits}
    for name, value in draw(cfg).items():
        module = name.removesuffix(".weight")
        if value.ndim == 1:
            tensors[name] = mx.array(value).astype(dtype)
            used[name] = value
            continue
        b, g = special.get(module, (bits, group))
        q, s, z = mx.quantize(mx.array(value).astype(dtype), group_size=g, bits=b)
        tensors.update({name: q, f"{module}.scales": s, f"{module}.biases": z})
        s32, z32 = s.astype(mx.float32), z.astype(mx.float32)
        used[name] = np.array(mx.dequantize(q, s32, z32, group_size=g, bits=b))
        whole = unpack_affine(np.array(q), b, value.shape[1]).astype(np.float32)
        again = whole * np.repeat(np.array(s32), g, axis=1) + np.repeat(np.array(z32), g, axis=1)
        assert np.abs(again - used[name]).max() <= 1e-6 * np.abs(again).max(), name
    for module, (b, g) in special.items():
        quantization[module] = {"group_size": g, "bits": b}
    write_config(folder, cfg, quantization=quantization)
    write_tokenizer(folder)
    mx.save_safetensors(os.path.join(folder, "model.safetensors"), tensors, {"format": "mlx"})
    return used


def mlx_lm_logits(folder, tokens):
    """mlx-lm's own answer with everything that is not packed widened to float32."""
    from pathlib import Path

    from mlx.utils import tree_map
    from mlx_lm.utils import load_model
    model, _ = load_model(Path(folder))
    model.update(tree_map(lambda a: a.astype(mx.float32) if a.dtype != mx.uint32 else a,
                          model.parameters()))
    return np.array(model(mx.array([tokens]))[0])


# ---- the list -------------------------------------------------------------------------------

def plans():
    """name -> (config, writer(folder) -> dequantised weights, why)"""
    out = {}

    def add(name, cfg, why, writer):
        out[name] = (cfg, writer, why)

    def add_gguf(name, cfg, why, kind_of, split=0):
        add(name, cfg, why, lambda folder: write_gguf(folder, cfg, kind_of, split))

    def add_st(name, cfg, why, dtype, **more):
        add(name, cfg, why, lambda folder: write_safetensors(folder, cfg, dtype, **more))

    for kind in (T.F32, T.F16, T.BF16):
        add_gguf(f"gguf-{kind.name.lower()}", PLAIN, "float format", all_of(kind))
    for kind in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
        add_gguf(f"gguf-{kind.name.lower()}", BLOCK32, "32-weight blocks, odd block counts", all_of(kind))
    for kind in SUPER:
        add_gguf(f"gguf-{kind.name.lower()}", BLOCK256, "super-blocks, embedding rows too", all_of(kind))
    add_gguf("gguf-mixed", MIXED256, "eight types in one file, untied output", mixed_kinds)
    add_gguf("gguf-f16-split", PLAIN, "three parts", all_of(T.F16), split=8)
    add_gguf("gguf-f32-odd", ODD, "widths 72 and 100, head size 18", all_of(T.F32))
    add_gguf("gguf-bf16-odd", ODD, "widths 72 and 100, head size 18", all_of(T.BF16))
    add_gguf("gguf-f16-wide", WIDE, "head size 64, wider than the model", all_of(T.F16))
    add_gguf("gguf-f16-bias", BIAS, "biases on q, k, v, o; q and k biases reordered", all_of(T.F16))
    add_gguf("gguf-f16-untied", UNTIED, "output.weight", all_of(T.F16))
    add_gguf("gguf-f16-llama3-rope", STRETCHED, "rope_freqs.weight", all_of(T.F16))
    add_gguf("gguf-f16-linear-rope", LINEAR, "rope.scaling.type linear", all_of(T.F16))
    add_gguf("gguf-f16-epsilon", EPSILON, "epsilon 0.05; as many KV heads as heads", all_of(T.F16))

    add_st("st-f32", PLAIN, "half-split rotation, one file", torch.float32)
    add_st("st-f16", PLAIN, "float format", torch.float16)
    add_st("st-bf16", PLAIN, "float format", torch.bfloat16)
    add_st("st-bf16-sharded", PLAIN, "three shards and an index", torch.bfloat16, shards=3)
    add_st("st-f32-odd", ODD, "widths 72 and 100, head size 18", torch.float32)
    add_st("st-f16-wide", WIDE, "head_dim is not hidden_size / heads", torch.float16)
    add_st("st-f16-bias", BIAS, "attention_bias", torch.float16)
    add_st("st-f16-untied", UNTIED, "lm_head.weight", torch.float16)
    add_st("st-f16-llama3-rope", STRETCHED, "rope_scaling of type llama3", torch.float16)
    add_st("st-f16-linear-rope", LINEAR, "rope_parameters, as transformers 5 writes it",
           torch.float16, new_rope=True)

    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            cfg = {32: MLX_G32, 64: MLX_G64, 128: MLX_G128}[group]
            dtype = {32: mx.float16, 64: mx.bfloat16, 128: mx.float32 if bits == 4 else mx.bfloat16}[group]
            add(f"mlx-b{bits}-g{group}", cfg, f"affine, scales {str(dtype).split('.')[-1]}",
                lambda folder, cfg=cfg, bits=bits, group=group, dtype=dtype:
                write_mlx(folder, cfg, bits, group, dtype))
    untied = dict(MLX_G64, tie_word_embeddings=False)
    other = {"lm_head": (6, 64), "model.layers.0.mlp.down_proj": (8, 32),
             "model.layers.1.self_attn.v_proj": (5, 128)}
    add("mlx-mixed", untied, "bits and groups that differ by module, lm_head quantised",
        lambda folder: write_mlx(folder, untied, 4, 64, mx.bfloat16, other))
    return out


def make(root, name, cfg, writer, why, done, script):
    folder = os.path.join(root, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    used = writer(folder)
    tokens = tokens_of(cfg)
    out = oracle.logits(cfg, used, tokens).astype("<f4")
    exact = oracle.logits(cfg, used, tokens, torch.float64)
    blob = out.tobytes()
    owner = done.setdefault(hashlib.sha256(blob).hexdigest(), name)
    if owner == name:
        with open(os.path.join(folder, "logits.bin"), "wb") as f:
            f.write(blob)
    files = sorted(f for f in os.listdir(folder) if f != "logits.bin")
    weights = [f for f in files if f.endswith((".gguf", ".safetensors"))]
    # A folder of safetensors is opened as such; a split GGUF by any of its parts.
    golden = {
        "name": name, "why": why,
        "model": weights[0] if weights[0].endswith(".gguf") else ".",
        "logits": "logits.bin" if owner == name else f"../{owner}/logits.bin",
        "shape": list(out.shape), "tokens": tokens,
        "float32_against_float64": float(f"{oracle.relative(out, exact):.2e}"),
    }
    packages = ["numpy", "torch", "transformers"]
    if name.startswith("mlx"):
        gap = oracle.relative(mlx_lm_logits(folder, tokens), out)
        assert gap < 2e-5, (name, gap)
        golden["mlx_lm_against_oracle"] = float(f"{gap:.2e}")
        packages += ["mlx", "mlx-lm"]
    packages.append("gguf" if name.startswith("gguf") else "safetensors")
    golden["config"] = cfg
    golden["sha256"] = {f: oracle.sha256(os.path.join(folder, f)) for f in files}
    golden["command"] = f"python tests/oracle/{script} --only {name}"
    golden["versions"] = oracle.versions(*packages)
    oracle.write_json(os.path.join(folder, "golden.json"), golden)
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    top = np.sort(out, axis=1)
    print(f"{name:22} {size / 1024:7.1f} KiB  f32/f64 {golden['float32_against_float64']:.1e}  "
          f"mlx {golden.get('mlx_lm_against_oracle', float('nan')):.1e}  max|logit| {np.abs(out).max():5.2f}  "
          f"median gap {np.median(top[:, -1] - top[:, -2]):.2f}")


def make_all(out, todo, only, script):
    done = {}
    for name, (cfg, writer, why) in todo.items():
        if only and name not in only:
            golden = os.path.join(out, name, "golden.json")
            if os.path.exists(golden) and os.path.exists(p := os.path.join(out, name, "logits.bin")):
                done[oracle.sha256(p)] = name
            continue
        make(out, name, cfg, writer, why, done, script)
    if not only:
        oracle.write_json(os.path.join(out, "index.json"), {"models": list(todo)})


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default=os.path.join(here, "..", "golden", "llama"))
    ap.add_argument("--only", nargs="+", help="names; the others, and index.json, stay as they are")
    args = ap.parse_args()
    mx.set_default_device(mx.cpu)
    make_all(args.out, plans(), args.only, "tiny_llama.py")


if __name__ == "__main__":
    main()
