# SPDX-License-Identifier: Apache-2.0
"""tokenizer_ids.py - texts with the oracle's ids and decodings, for the tokenizer_compare program.

    python tests/oracle/tokenizer_ids.py VOCAB OUT [--count 100000] [--seed 1]

VOCAB is a tokenizer.json or a GGUF file. For a GGUF file the oracle is built from its vocabulary and
merges with the pre-tokenizer that its `tokenizer.ggml.pre` stands for, and OUT.parts receives the
metadata that tokenizer_compare feeds to qn_tokenizer_from_parts.

Layout of OUT, little endian: "QNTOK1\\0\\0", u32 texts, u32 id lists; then for each text u32 bytes, the
bytes, and four lists: ids plain, with special tokens, with special spellings taken as text; then the
decodings of the second list with and without special tokens. A list is u32 n and n u32; a decoding u32
bytes and the bytes. Each of the random id lists is a list and its two decodings.

    python tests/oracle/tokenizer_ids.py VOCAB.gguf OUT --peer VOCAB.gguf.inp VOCAB.gguf.out

takes texts and ids from the files that llama.cpp keeps beside its vocabularies instead. OUT then holds
"QNIDS1\0\0", u32 texts, and for each u32 bytes, the bytes, and the list with special spellings taken as
text.
"""
import argparse
import pathlib
import random
import struct

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import AddedToken

from tokenizer_strings import Texts

NONE = 0xFFFFFFFF


def gpt2_rules(pre):
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    known = {"smollm": [digits, byte_level], "starcoder": [digits, byte_level], "gpt-2": [byte_level]}
    return pre_tokenizers.Sequence(known[pre])


def add_kinds(tok, tokens, kinds):
    for i, kind in enumerate(kinds):
        if kind in (2, 3, 4):
            token = AddedToken(tokens[i], special=kind != 4, normalized=False)
            tok.add_special_tokens([token]) if kind != 4 else tok.add_tokens([token])


def spm_of_gguf(path):
    """A SentencePiece BPE vocabulary: scores rank the merges, bytes stand in for what is unknown. With
    the BOS in front where the file asks for it."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    get = lambda key, default=None: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else default
    tokens, scores, kinds = get("tokens"), get("scores"), get("token_type")
    vocab = {t: i for i, t in enumerate(tokens)}
    merges = []
    for piece, score, kind in zip(tokens, scores, kinds):
        if kind != 1:
            continue
        cuts = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
        cuts = [c for c in cuts if c[0] in vocab and c[1] in vocab]
        merges += [(-score, vocab[a], vocab[b], a, b) for a, b in cuts]
    merges.sort()
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[m[3:] for m in merges], fuse_unk=True,
                               byte_fallback=True, unk_token=tokens[get("unknown_token_id")]))
    space = [normalizers.Prepend("\u2581")] if get("add_space_prefix", True) else []
    tok.normalizer = normalizers.Sequence(space + [normalizers.Replace(" ", "\u2581")])
    strip = [decoders.Strip(" ", 1, 0)] if space else []
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                     decoders.Fuse()] + strip)
    add_kinds(tok, tokens, kinds)
    if get("add_bos_token", True):
        bos = tokens[get("bos_token_id")]
        tok.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, get("bos_token_id"))])
    return tok


def from_gguf(path, parts_path, parts_only=False):
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    get = lambda key, default=None: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else default
    tokens, kinds, merges = get("tokens"), get("token_type"), get("merges", [])
    write_parts(parts_path, get, tokens, kinds, merges)
    if parts_only:
        return None
    if get("model") == "llama":
        return spm_of_gguf(path)
    vocab = {t: i for i, t in enumerate(tokens)}
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges]))
    tok.pre_tokenizer = gpt2_rules(get("pre"))
    tok.decoder = decoders.ByteLevel()
    add_kinds(tok, tokens, kinds)
    return tok


def write_parts(path, get, tokens, kinds, merges):
    def text(s):
        b = s if isinstance(s, bytes) else s.encode()
        return struct.pack("<I", len(b)) + b

    flag = lambda key: struct.pack("<i", -1 if get(key) is None else int(bool(get(key))))
    with open(path, "wb") as f:
        f.write(b"QNPARTS1" + text(get("model")) + text(get("pre", "")))
        f.write(struct.pack("<I", len(tokens)) + b"".join(map(text, tokens)))
        f.write(struct.pack(f"<{len(tokens)}i", *(kinds or [1] * len(tokens))))
        scores = get("scores") or []
        f.write(struct.pack("<I", len(scores)) + struct.pack(f"<{len(scores)}f", *scores))
        f.write(struct.pack("<I", len(merges)) + b"".join(map(text, merges)))
        for key in ("bos", "eos", "unknown", "padding", "eot", "eom"):
            v = get(f"{key}_token_id")
            f.write(struct.pack("<I", NONE if v is None else v))
        f.write(flag("add_bos_token") + flag("add_eos_token") + flag("add_space_prefix"))


def from_peer(a):
    from_gguf(a.vocab, a.out + ".parts", parts_only=True)
    texts = pathlib.Path(a.peer[0]).read_bytes().split(b"\n__ggml_vocab_test__\n")
    lists = pathlib.Path(a.peer[1]).read_text().split("\n")
    pairs = [(t, [int(x) for x in l.split()]) for t, l in zip(texts, lists) if t]
    body = b"".join(struct.pack("<I", len(t)) + t + id_list(ids) for t, ids in pairs)
    pathlib.Path(a.out).write_bytes(b"QNIDS1\0\0" + struct.pack("<I", len(pairs)) + body)


def id_list(ids):
    return struct.pack(f"<I{len(ids)}I", len(ids), *ids)


def decoding(tok, ids, skip):
    b = tok.decode(ids, skip_special_tokens=skip).encode()
    return struct.pack("<I", len(b)) + b


def main():
    a = argparse.ArgumentParser()
    a.add_argument("vocab")
    a.add_argument("out")
    a.add_argument("--count", type=int, default=100000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--peer", nargs=2)
    a = a.parse_args()
    if a.peer:
        return from_peer(a)
    if a.vocab.endswith(".gguf"):
        tok = from_gguf(a.vocab, a.out + ".parts")
        if tok is None:
            return
    else:
        tok = Tokenizer.from_file(a.vocab)
    tok.no_truncation()
    tok.no_padding()
    specials = [t.content for t in tok.get_added_tokens_decoder().values()]
    size = max(tok.get_vocab().values()) + 1
    texts = Texts(a.seed, specials)
    r = random.Random(a.seed)
    raw = [texts.text() for _ in range(a.count)]
    lists = max(1, a.count // 10)
    with open(a.out, "wb") as f:
        f.write(b"QNTOK1\0\0" + struct.pack("<II", len(raw), lists))
        for at in range(0, len(raw), 4096):
            chunk = raw[at : at + 4096]
            strings = [b.decode("utf-8", errors="replace") for b in chunk]
            tok.encode_special_tokens = False
            plain = tok.encode_batch_fast(strings, add_special_tokens=False)
            full = tok.encode_batch_fast(strings, add_special_tokens=True)
            tok.encode_special_tokens = True
            inert = tok.encode_batch_fast(strings, add_special_tokens=False)
            for b, p, s, i in zip(chunk, plain, full, inert):
                f.write(struct.pack("<I", len(b)) + b + id_list(p.ids) + id_list(s.ids) + id_list(i.ids))
                f.write(decoding(tok, s.ids, False) + decoding(tok, s.ids, True))
        for _ in range(lists):
            ids = [r.randrange(size) for _ in range(r.randint(0, 12))]
            f.write(id_list(ids) + decoding(tok, ids, False) + decoding(tok, ids, True))
    print(f"{a.out}: {len(raw)} texts, {sum(map(len, raw))} bytes, {lists} id lists")


if __name__ == "__main__":
    main()
