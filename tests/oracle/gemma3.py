# SPDX-License-Identifier: Apache-2.0
"""Greedy goldens of Gemma-3-270M (Q4_K_M), short prompts and one far beyond the window.

    python tests/oracle/gemma3.py FILE.gguf          -> tests/golden/gemma3-270m/greedy.json

transformers' Gemma 3 in float32 on the dequantised weights, its embedding factor rounded to bf16, the
type that the model was made in. Ten prompts and one of 3,000 tokens (the window is 512), a hundred
greedy tokens each, end-of-text not obeyed; greedy.py says what is kept. Some minutes.
"""
import argparse
import os
from pathlib import Path

import gguf
import numpy as np
from gguf import quants

import oracle
from greedy import COMMON_PROMPTS, run_all, summary, torch_runner
from tokenizer_ids import spm_of_gguf

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "gemma3-270m"
LONG_TOKENS = 3000

PROMPTS = [
    "The capital of France is",
    "<start_of_turn>user\nName three things that a baker needs every morning.<end_of_turn>\n"
    "<start_of_turn>model\n",
    *COMMON_PROMPTS,
    "A quern is one of the oldest machines in the house. Two round stones lie on each other; the lower "
    "one is fixed and the upper one turns on a wooden pin. Grain is poured by hand through the eye in "
    "the middle, and flour comes out around the rim. What this story teaches about owning your own "
    "tools is",
]


def long_text():
    """A mill's ledger: no two lines are alike, so what fell out of the window matters."""
    grains = ["rye", "wheat", "barley", "oats", "spelt", "millet", "buckwheat"]
    people = ["Marta", "Jonas", "Elif", "Piotr", "Amara", "Nils", "Greta", "Tomas", "Ines"]
    words = ["paid in coin", "paid in eggs", "owes the rest", "will come again", "asked for coarse flour"]
    lines = ["The ledger of the mill at the weir, as Marta kept it for one year."]
    for i in range(400):
        lines.append(f"Entry {i + 1}: {people[i * 7 % 9]} brought {3 + i * 13 % 41} sacks of "
                     f"{grains[i * 5 % 7]}, {words[i * 3 % 5]}.")
    return "\n".join(lines)


class Source:
    """The GGUF: config, dequantised float32 weights by safetensors name, tokenizer."""

    def __init__(self, path):
        self.path = path
        reader = gguf.GGUFReader(path)
        field = lambda key: reader.fields[f"gemma3.{key}"].contents()
        ids = lambda key: reader.fields[f"tokenizer.ggml.{key}_token_id"].contents()
        self.config = {
            "model_type": "gemma3_text", "dtype": "bfloat16", "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size": field("embedding_length"), "intermediate_size": field("feed_forward_length"),
            "num_hidden_layers": field("block_count"), "num_attention_heads": field("attention.head_count"),
            "num_key_value_heads": field("attention.head_count_kv"),
            "head_dim": field("attention.key_length"), "query_pre_attn_scalar": field("attention.key_length"),
            "max_position_embeddings": field("context_length"),
            "rms_norm_eps": float(str(np.float32(field("attention.layer_norm_rms_epsilon")))),
            "rope_theta": field("rope.freq_base"), "rope_local_base_freq": 10000.0,
            "sliding_window": field("attention.sliding_window"), "tie_word_embeddings": True,
            "bos_token_id": ids("bos"), "eos_token_id": ids("eos"), "pad_token_id": ids("padding"),
        }
        self.weights = {}
        for t in reader.tensors:
            name = oracle.hf_name(t.name, "gemma3_text")
            w = quants.dequantize(t.data, t.tensor_type).astype(np.float32)
            w = w.reshape([int(n) for n in reversed(t.shape)])
            self.weights[name] = w - 1 if name.endswith("norm.weight") else w
        self.config["vocab_size"] = self.weights["model.embed_tokens.weight"].shape[0]


def long_prompt(tokenizer):
    """The ledger, cut to LONG_TOKENS tokens at a place where its text has the same ids."""
    ids = tokenizer.encode(long_text()).ids
    text = tokenizer.decode(ids[:LONG_TOKENS], skip_special_tokens=True)
    assert tokenizer.encode(text).ids == ids[:LONG_TOKENS]
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("file", help="gemma-3-270m-q4_k_m.gguf, as tools/gemma.sh fetches it")
    args = ap.parse_args()
    source = Source(args.file)
    tokenizer = spm_of_gguf(args.file)
    model = oracle.build(source.config, source.weights)
    os.makedirs(GOLDEN, exist_ok=True)
    results = run_all(PROMPTS + [long_prompt(tokenizer)], tokenizer, *torch_runner(model))
    assert "city" in results[0]["continuation"], results[0]["continuation"]
    oracle.write_json(GOLDEN / "greedy.json", {
        "model": "gemma-3-270m-q4_k_m.gguf", "sha256": oracle.sha256(source.path),
        "arithmetic": "transformers Gemma 3, eager attention, float32, weights dequantised to float32, "
                      "embedding factor rounded to bf16",
        "command": "python tests/oracle/gemma3.py FILE.gguf",
        "versions": oracle.versions("numpy", "torch", "transformers", "gguf", "tokenizers"),
        "summary": summary(results), "prompts": results})


if __name__ == "__main__":
    main()
