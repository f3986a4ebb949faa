# SPDX-License-Identifier: Apache-2.0
"""tokenizer_golden.py - two small vocabularies of our own, and texts with the oracle's ids.

    python tests/oracle/tokenizer_golden.py tests/golden/tokenizer

Trained on generated text, so nothing in them is anybody else's. Writes byte_level.json, spm.json and
for each NAME.cases, little endian: "QNTOKG1\\0", u32 texts; for each u16 bytes and the text, u16 n and
n u16 ids with special tokens, u16 n and ids with special spellings taken as text and nothing added
(0xFFFF: as the first list without what was added), u16 bytes and the first list decoded without special
tokens. Then u32 lists of random ids: u16 n, ids, u16 bytes, decoded with special tokens.
"""
import pathlib
import random
import struct
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

from tokenizer_strings import Texts

WORDS = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def corpus():
    t = Texts(7)
    return [t.prose(40) for _ in range(800)] + [t.script(30) for _ in range(200)] + [t.digits() for _ in range(200)]


def byte_level():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=900, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok.add_tokens([AddedToken("<think>", normalized=False), AddedToken("mill", single_word=True),
                    AddedToken("<pad>", lstrip=True, rstrip=True, normalized=False)])
    tok.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    return tok


def spm():
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    words.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=1100, limit_alphabet=250,
                                                            show_progress=False))
    import json

    model = json.loads(words.to_str())["model"]
    vocab = {}
    for piece in ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)),
                  *sorted(model["vocab"], key=model["vocab"].get)]:
        vocab.setdefault(piece, len(vocab))
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m) for m in model["merges"]], unk_token="<unk>",
                               fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in ("<unk>", "<s>", "</s>")])
    tok.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", vocab["<s>"]), ("</s>", vocab["</s>"])])
    return tok


def ids(list_):
    return struct.pack(f"<H{len(list_)}H", len(list_), *list_)


def text(b):
    return struct.pack("<H", len(b)) + b


def cases(tok, n):
    size = tok.get_vocab_size()
    strings = Texts(11, [t.content for t in tok.get_added_tokens_decoder().values()])
    out, count, r = b"", 0, random.Random(3)
    while count < n:
        raw = strings.text()
        if len(raw) > 90:
            continue
        s = raw.decode("utf-8", errors="replace")
        tok.encode_special_tokens = False
        full, plain = tok.encode(s).ids, tok.encode(s, add_special_tokens=False).ids
        tok.encode_special_tokens = True
        inert = tok.encode(s, add_special_tokens=False).ids
        out += text(raw) + ids(full) + (struct.pack("<H", 0xFFFF) if inert == plain else ids(inert))
        out += text(tok.decode(full, skip_special_tokens=True).encode())
        count += 1
    lists = b""
    for _ in range(100):
        some = [r.randrange(size) for _ in range(r.randint(0, 10))]
        lists += ids(some) + text(tok.decode(some, skip_special_tokens=False).encode())
    return b"QNTOKG1\0" + struct.pack("<I", n) + out + struct.pack("<I", 100) + lists


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, tok in (("byte_level", byte_level()), ("spm", spm())):
        (folder / f"{name}.json").write_text(tok.to_str(pretty=False), encoding="utf-8")
        (folder / f"{name}.cases").write_bytes(cases(tok, 500))


main()
