# SPDX-License-Identifier: Apache-2.0
"""perf_models.py - the files that bench/performance measures, made where they are missing.

Real weights come from the tools that fetch them; the third model is as large as Llama-3.2-1B and its
weights are random bits of plausible sizes, since speed does not depend on what they say. The peer's own
quantiser makes every format. A file appears under its name once it is whole.
"""
import hashlib
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {"smollm2": "SmolLM2-135M", "gemma3": "Gemma-3-270M", "llama1b": "1B (shape of Llama-3.2-1B, random weights)"}
SMALL = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "BF16")
FORMATS = {"smollm2": SMALL, "gemma3": SMALL, "llama1b": SMALL + ("Q4_K_M", "Q6_K")}
KL_FORMATS = SMALL + ("Q4_K_M", "Q5_K_M", "Q6_K", "Q3_K_M")

LAYERS, WIDTH, HEADS, KV_HEADS, FFN, VOCAB, SEED = 16, 2048, 32, 8, 8192, 128256, 1
N_SPECIAL = 256  # control tokens at the end of the vocabulary
F32, F16 = 0, 1  # tensor types of GGUF
ALIGN, PIECE = 32, 1 << 24


# ---- the synthetic model ----------------------------------------------------------------------

def byte_letters():
    """How byte-level vocabularies spell a byte: itself where printable, else a letter from 256 on."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(b) if b in kept else chr(next(spare)) for b in range(256)]


def vocabulary():
    """(tokens, merges): bytes, then pairs of earlier tokens, so that every merge can happen."""
    tokens = byte_letters()
    known, merges, round_ = set(tokens), [], 0
    while len(tokens) < VOCAB - N_SPECIAL:
        draws = struct.unpack("<8192I", hashlib.shake_128(f"vocabulary {SEED} {round_}".encode()).digest(32768))
        round_ += 1
        for a, b in zip(draws[::2], draws[1::2]):
            left, right = tokens[a % len(tokens)], tokens[b % len(tokens)]
            both = left + right
            if len(both) > 12 or both in known or len(tokens) == VOCAB - N_SPECIAL:
                continue
            known.add(both)
            tokens.append(both)
            merges.append(f"{left} {right}")
    return tokens + [f"<|special_{i}|>" for i in range(N_SPECIAL)], merges


def text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def field(key, kind, value):
    codes = {"u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<?")}
    if kind in codes:
        return text(key) + struct.pack("<I", codes[kind][0]) + struct.pack(codes[kind][1], value)
    if kind == "str":
        return text(key) + struct.pack("<I", 8) + text(value)
    if kind == "strs":
        return text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return text(key) + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def fields():
    tokens, merges = vocabulary()
    numbers = {"context_length": 131072, "embedding_length": WIDTH, "block_count": LAYERS,
               "feed_forward_length": FFN, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
               "rope.dimension_count": WIDTH // HEADS, "vocab_size": VOCAB}
    out = [field("general.architecture", "str", "llama"), field("general.name", "str", "random 1B"),
           field("general.alignment", "u32", ALIGN)]
    out += [field(f"llama.{k}", "u32", v) for k, v in numbers.items()]
    out += [field("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5), field("llama.rope.freq_base", "f32", 5e5),
            field("tokenizer.ggml.model", "str", "gpt2"), field("tokenizer.ggml.pre", "str", "llama-bpe"),
            field("tokenizer.ggml.tokens", "strs", tokens), field("tokenizer.ggml.merges", "strs", merges),
            field("tokenizer.ggml.token_type", "ints", [1] * (VOCAB - N_SPECIAL) + [3] * N_SPECIAL),
            field("tokenizer.ggml.bos_token_id", "u32", VOCAB - N_SPECIAL),
            field("tokenizer.ggml.eos_token_id", "u32", VOCAB - N_SPECIAL + 1)]
    return out


def tensors():
    """(name, columns, rows); vectors have no rows."""
    kv = WIDTH // HEADS * KV_HEADS
    out = [("token_embd.weight", WIDTH, VOCAB), ("output_norm.weight", WIDTH, 0)]
    for layer in range(LAYERS):
        out += [(f"blk.{layer}.{name}.weight", cols, rows) for name, cols, rows in (
            ("attn_norm", WIDTH, 0), ("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, kv), ("attn_v", WIDTH, kv),
            ("attn_output", WIDTH, WIDTH), ("ffn_norm", WIDTH, 0), ("ffn_gate", WIDTH, FFN), ("ffn_up", WIDTH, FFN),
            ("ffn_down", FFN, WIDTH))]
    return out


def high_bytes(cols):
    """What a random byte becomes as the upper half of an f16: a sign, two bits of fraction, and an exponent
    from a few, so that values spread like weights of a layer with that many columns."""
    top = 15 - ((cols.bit_length() - 1) // 2) - 1
    return bytes((b & 0x80) | ((top - (0, 0, 0, 1, 1, 1, 2, 3)[(b >> 2) & 7]) << 2) | (b & 3) for b in range(256))


def write_weights(out, name, cols, rows):
    if not rows:
        out.write(struct.pack("<f", 1.0) * cols)
        return
    spread, left, i = high_bytes(cols), 2 * cols * rows, 0
    while left:
        raw = bytearray(hashlib.shake_128(f"{SEED} {name} {i}".encode()).digest(min(left, PIECE)))
        raw[1::2] = raw[1::2].translate(spread)
        out.write(raw)
        left, i = left - len(raw), i + 1


def synthetic(path):
    """Writes the 1B in f16."""
    infos, at = [], 0
    for name, cols, rows in tensors():
        shape = (cols, rows) if rows else (cols,)
        infos.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) +
                     struct.pack("<IQ", F16 if rows else F32, at))
        at += -(-(2 * cols * rows or 4 * cols) // ALIGN) * ALIGN
    head = fields()
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(head)) + b"".join(head) + b"".join(infos))
        for name, cols, rows in tensors():
            out.write(bytes(-out.tell() % ALIGN))
            write_weights(out, name, cols, rows)
        out.write(bytes(-out.tell() % ALIGN))


# ---- finding and making -----------------------------------------------------------------------

def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT, **more)
    if done.returncode:
        raise SystemExit(f"bench/performance: {command[0]} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


class Files:
    """Model files in one folder, by model and format."""

    def __init__(self, folder, given, quantiser):
        self.folder, self.given, self.quantiser = pathlib.Path(folder), given, quantiser
        self.folder.mkdir(parents=True, exist_ok=True)

    def source(self, model):
        """What the other formats of a model are made from."""
        if self.given.get(model):
            return pathlib.Path(self.given[model]).resolve()
        if model == "smollm2":
            return pathlib.Path(run(["tools/starter.sh"]).strip().split("\n")[-1])
        if model == "gemma3":
            return pathlib.Path(run(["tools/gemma.sh"]).strip().split("\n")[-1])
        path = self.folder / "llama1b-F16.gguf"
        if not path.exists():
            print(f"writing {path.name} (2.5 GB)", flush=True)
            synthetic(path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        return path

    def get(self, model, fmt):
        path = self.folder / f"{model}-{fmt}.gguf"
        if not path.exists():
            source = self.source(model)
            if not source.is_file():
                raise SystemExit(f"bench/performance: no file of {MODELS[model]}; QUERN_OFFLINE is set?")
            print(f"quantising {path.name}", flush=True)
            driver, library = self.quantiser()
            part = path.with_suffix(".part")
            run([driver, source, part, fmt], env=dict(os.environ, PEER_BACKENDS=str(library)))
            part.replace(path)
        return path


def census(quern, path):
    """[[format, tensors, bytes]] of the matrices, largest first, and the bytes of all."""
    told = json.loads(run([quern, "inspect", "--json", path]))
    rows = [[c["format"], c["tensors"], c["bytes"]] for c in told["census"] if c["format"] != "F32"]
    return sorted(rows, key=lambda r: -r[2])


# ---- real text ----------------------------------------------------------------------------------

def lazy_objects(raw):
    """R's lazy-load file: for each object four bytes of size and a zlib stream."""
    at = 0
    while at + 4 < len(raw):
        stream = zlib.decompressobj()
        yield stream.decompress(raw[at + 4:])
        if len(stream.unused_data) == len(raw) - at - 4:
            return
        at = len(raw) - len(stream.unused_data)


def strings(blob):
    """The first run of strings in a serialised object: type word, length, bytes, one after the other."""
    mark = b"\x00\x04\x00\x09"
    at = blob.find(mark)
    while at >= 0 and blob[at:at + 4] == mark:
        size = max(0, int.from_bytes(blob[at + 4:at + 8], "big", signed=True))
        yield blob[at + 8:at + 8 + size]
        at += 8 + size


def austen(folder):
    """Six novels (public domain) as Debian packages them for R: the file of text, fetched once."""
    out = pathlib.Path(folder) / "austen.txt"
    if out.exists():
        return out
    work = pathlib.Path(folder) / "austen.part"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    done = subprocess.run(["apt-get", "download", "-qq", "r-cran-janeaustenr"], cwd=work, capture_output=True, text=True)
    found = list(work.glob("*.deb"))
    if done.returncode or not found:
        raise SystemExit("bench/performance: apt-get could not download r-cran-janeaustenr; give a text with --text")
    raw, at = found[0].read_bytes(), 8
    while at + 60 <= len(raw):  # members of an ar archive: 60 bytes of header each
        name, size = raw[at:at + 16].decode().strip(), int(raw[at + 48:at + 58])
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(raw[at + 60:at + 60 + size])) as tar:
                member = next(m for m in tar.getmembers() if m.name.endswith("Rdata.rdb"))
                lines = [s for blob in lazy_objects(tar.extractfile(member).read()) for s in strings(blob)]
        at += 60 + size + size % 2
    (work / "text").write_bytes(b"".join(line + b"\n" for line in lines))
    (work / "text").replace(out)
    shutil.rmtree(work)
    return out


def test_split(path):
    """(first byte, sha256): the last tenth, from the line that begins behind nine tenths on."""
    raw = pathlib.Path(path).read_bytes()
    first = raw.find(b"\n", len(raw) * 9 // 10) + 1
    return first, hashlib.sha256(raw[first:]).hexdigest()
