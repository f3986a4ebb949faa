# SPDX-License-Identifier: Apache-2.0
"""Greedy goldens of the starter model, SmolLM2-135M-Instruct, and of its MLX-affine copies.

    python tests/oracle/smollm2.py golden FILE.gguf          -> tests/golden/smollm2/greedy.json
    python tests/oracle/smollm2.py copy   FILE.gguf BITS DIR -> an MLX-affine copy, group 64
    python tests/oracle/smollm2.py mlx    FILE.gguf          -> tests/golden/smollm2/greedy-mlx{4,8}.json

golden: transformers' Llama in float32 on the dequantised weights. mlx: mlx-lm itself on the CPU, on
copies made in a temporary folder; scales, biases and norms are widened to float32, so all of its
arithmetic is float32. The copies hold scales and norms in bf16 (4-bit) and f16 (8-bit); their digest
is in the golden, so a copy made elsewhere can be told to be the same weights.

Ten prompts, a hundred greedy tokens each, end-of-text not obeyed; greedy.py says what is kept.
"""
import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from gguf import quants
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import oracle
from greedy import COMMON_PROMPTS, run_all, summary, torch_runner

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "smollm2"

PROMPTS = [
    "The capital of France is",
    "<|im_start|>user\nName three things that a baker needs every morning.<|im_end|>\n"
    "<|im_start|>assistant\n",
    *COMMON_PROMPTS,
    "A quern is one of the oldest machines in the house. Two round stones lie on each other; the lower "
    "one is fixed and the upper one turns on a wooden pin. Grain is poured by hand through the eye in "
    "the middle, and flour comes out around the rim. For some thousands of years nearly every family "
    "owned one, because a loaf a day needs about an hour of grinding, and nobody wanted to carry grain "
    "over the hills to a mill and flour back again. When water mills came, the lords who had paid for "
    "them often forbade the hand stones, since every peasant who ground at home paid no toll at the "
    "weir. The stones were broken, or hidden under the floor, and people went on grinding at night. "
    "What this story teaches about owning your own tools is",
]


class Source:
    """The GGUF: config, dequantised float32 weights by safetensors name, tokenizer."""

    def __init__(self, path):
        self.path = path
        reader = gguf.GGUFReader(path)
        self.field = lambda key: reader.fields[key].contents()
        heads = self.field("llama.attention.head_count")
        width = self.field("llama.embedding_length")
        self.config = {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "hidden_size": width, "intermediate_size": self.field("llama.feed_forward_length"),
            "num_hidden_layers": self.field("llama.block_count"), "num_attention_heads": heads,
            "num_key_value_heads": self.field("llama.attention.head_count_kv"),
            "head_dim": width // heads, "max_position_embeddings": self.field("llama.context_length"),
            # the file says it in float32; without rounding the shortest decimal is the same number
            "rms_norm_eps": float(str(np.float32(self.field("llama.attention.layer_norm_rms_epsilon")))),
            "rope_theta": self.field("llama.rope.freq_base"), "rope_scaling": None,
            "attention_bias": False, "mlp_bias": False,
            "tie_word_embeddings": all(t.name != "output.weight" for t in reader.tensors),
            "vocab_size": self.field("llama.vocab_size"),
            "bos_token_id": self.field("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.field("tokenizer.ggml.eos_token_id"),
        }
        self.weights = {}
        for t in reader.tensors:
            name = oracle.hf_name(t.name)
            w = quants.dequantize(t.data, t.tensor_type).astype(np.float32)
            w = w.reshape([int(n) for n in reversed(t.shape)])
            self.weights[name] = oracle.to_hf_rows(w, oracle.rotary_heads(name, self.config))

    def tokenizer(self):
        """Byte-level BPE with single digits split off first (tokenizer.ggml.pre smollm)."""
        vocab = self.field("tokenizer.ggml.tokens")
        merges = [tuple(m.split(" ")) for m in self.field("tokenizer.ggml.merges")]
        t = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(vocab)}, merges=merges))
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
        t.decoder = decoders.ByteLevel()
        kinds = self.field("tokenizer.ggml.token_type")
        t.add_special_tokens([AddedToken(s, special=True, normalized=False)
                              for s, k in zip(vocab, kinds) if k == 3])
        return t


def golden(source):
    model = oracle.build(source.config, source.weights)
    results = run_all(PROMPTS, source.tokenizer(), *torch_runner(model))
    assert "Paris" in results[0]["continuation"][:20], results[0]["continuation"]
    oracle.write_json(GOLDEN / "greedy.json", {
        "model": "SmolLM2-135M-Instruct.Q4_1.gguf", "sha256": oracle.sha256(source.path),
        "arithmetic": "transformers Llama, eager attention, float32, weights dequantised to float32",
        "command": "python tests/oracle/smollm2.py golden FILE.gguf",
        "versions": oracle.versions("numpy", "torch", "transformers", "gguf", "tokenizers"),
        "summary": summary(results), "prompts": results})


def write_copy(source, bits, folder):
    """An MLX checkpoint: every matrix quantised, the embedding too; returns the digest of its tensors."""
    import mlx.core as mx
    dtype = {4: mx.bfloat16, 8: mx.float16}[bits]
    os.makedirs(folder, exist_ok=True)
    tensors = {}
    for name, value in source.weights.items():
        w = mx.array(value).astype(dtype)
        if w.ndim == 1:
            tensors[name] = w
            continue
        module = name.removesuffix(".weight")
        tensors[name], tensors[f"{module}.scales"], tensors[f"{module}.biases"] = \
            mx.quantize(w, group_size=64, bits=bits)
    mx.save_safetensors(os.path.join(folder, "model.safetensors"), tensors, {"format": "mlx"})
    cfg = dict(source.config, quantization={"group_size": 64, "bits": bits})
    oracle.write_json(os.path.join(folder, "config.json"), cfg)
    source.tokenizer().save(os.path.join(folder, "tokenizer.json"))
    return digest(tensors)


def digest(tensors):
    """SHA-256 over the tensors in name order: name, a zero byte, the bytes."""
    import mlx.core as mx
    sha = hashlib.sha256()
    for name in sorted(tensors):
        t = tensors[name]
        raw = t.view(mx.uint16) if t.dtype in (mx.bfloat16, mx.float16) else t
        sha.update(name.encode() + b"\0" + np.array(raw).tobytes())
    return sha.hexdigest()


def mlx(source):
    import mlx.core as mx
    from mlx.utils import tree_map
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_model
    mx.set_default_device(mx.cpu)
    for bits in (4, 8):
        with tempfile.TemporaryDirectory() as folder:
            weights = write_copy(source, bits, folder)
            model, _ = load_model(Path(folder))
            model.update(tree_map(lambda a: a.astype(mx.float32) if a.dtype != mx.uint32 else a,
                                  model.parameters()))
            state = {}

            def step(ids):
                if ids is None:
                    state["cache"] = make_prompt_cache(model)
                    return None
                out = model(mx.array([ids]), cache=state["cache"])
                assert out.dtype == mx.float32
                return np.array(out[0, -1])

            def whole(ids):
                return np.array(model(mx.array([ids]))[0])

            print(f"mlx {bits} bit")
            results = run_all(PROMPTS, source.tokenizer(), step, whole)
        oracle.write_json(GOLDEN / f"greedy-mlx{bits}.json", {
            "model": f"SmolLM2-135M-Instruct, MLX affine, {bits} bits, groups of 64, "
                     f"scales and norms {'bf16' if bits == 4 else 'f16'}",
            "tensors_sha256": weights, "source_sha256": oracle.sha256(source.path),
            "arithmetic": "mlx-lm on the CPU, float32 (scales, biases and norms widened)",
            "make_copy": f"python tests/oracle/smollm2.py copy FILE.gguf {bits} DIR",
            "command": "python tests/oracle/smollm2.py mlx FILE.gguf",
            "versions": oracle.versions("numpy", "mlx", "mlx-lm", "gguf", "tokenizers"),
            "summary": summary(results), "prompts": results})


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("verb", choices=("golden", "copy", "mlx"))
    ap.add_argument("file", help="SmolLM2-135M-Instruct.Q4_1.gguf, as tools/starter.sh fetches it")
    ap.add_argument("bits", nargs="?", type=int, choices=(4, 8))
    ap.add_argument("folder", nargs="?")
    args = ap.parse_args()
    os.makedirs(GOLDEN, exist_ok=True)
    source = Source(args.file)
    if args.verb == "golden":
        golden(source)
    elif args.verb == "mlx":
        mlx(source)
    elif args.bits and args.folder:
        print(write_copy(source, args.bits, args.folder))
    else:
        sys.exit("copy takes FILE BITS DIR")


if __name__ == "__main__":
    main()
