# SPDX-License-Identifier: Apache-2.0
"""format_vectors.py - what the gguf and mlx packages make of weight formats, as small binary files.

    python tests/oracle/format_vectors.py tests/unit/tensor/data

gguf.bin: records of  name[16] | u32 n | u32 n_bytes | u32 encodes | bytes | f32 decoded[n] | f32 in[n]
    Decoding: the bytes are random (with scales that are plain numbers). Where `encodes` is 1 the
    bytes are the package's own encoding of `in` instead.
affine.bin: u32 rows | u32 cols | f32 in[rows * cols], then records of
    u32 bits | u32 group | u32 words | words | f32 scales | f32 biases | f32 decoded[rows * cols]
All little-endian, seeded.
"""
import struct
import sys
from pathlib import Path

import gguf
import mlx.core as mx
import numpy as np
from gguf.quants import dequantize, quantize

Q = gguf.GGMLQuantizationType
# name, whether the package encodes it, offsets of the f16 fields in a block
FORMATS = [
    ("F16", True, []), ("BF16", True, []),
    ("Q4_0", True, [0]), ("Q4_1", True, [0, 2]), ("Q5_0", True, [0]), ("Q5_1", True, [0, 2]),
    ("Q8_0", True, [0]), ("Q2_K", False, [80, 82]), ("Q3_K", False, [108]),
    ("Q4_K", False, [0, 2]), ("Q5_K", False, [0, 2]), ("Q6_K", False, [208]),
]


def record(name, n, data, decoded, source, encodes):
    return (struct.pack("<16sIII", name.encode(), n, len(data), encodes) + data
            + decoded.astype("<f4").tobytes() + source.astype("<f4").tobytes())


def random_blocks(rng, name, fields, n_blocks, size):
    data = rng.integers(0, 256, (n_blocks, size), dtype=np.uint8)
    if name in ("F16", "BF16"):  # every finite exponent, but no NaN: its bits may differ
        v = (rng.standard_normal(n_blocks) * np.exp2(rng.integers(-20, 10, n_blocks))).astype(np.float32)
        v = v.astype(np.float16).view(np.uint16) if name == "F16" else (v.view(np.uint32) >> 16)
        return v.astype("<u2").view(np.uint8).reshape(n_blocks, size)
    for at in fields:
        scale = (rng.standard_normal(n_blocks) * 0.1).astype("<f2")
        data[:, at:at + 2] = scale.view(np.uint8).reshape(n_blocks, 2)
    return data


def gguf_records(rng):
    out = b""
    for name, encodes, fields in FORMATS:
        kind = Q[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = max(2 * block, 64)
        data = random_blocks(rng, name, fields, n // block, size)
        zero = np.zeros(n, dtype=np.float32)
        out += record(name, n, data.tobytes(), dequantize(data.reshape(-1), kind), zero, 0)
        if encodes:
            x = rng.standard_normal(n).astype(np.float32)
            if block == 32:
                x[:32] = 0  # a block of zeros
            data = quantize(x, kind)
            out += record(name, n, data.tobytes(), dequantize(data, kind), x, 1)
    return out


def affine_records(rng):
    rows, cols = 2, 256
    x = rng.standard_normal((rows, cols)).astype(np.float32)
    x[0, :128] = np.abs(x[0, :128])  # groups whose far edge is the maximum, the minimum, nothing
    x[0, 128:] = -np.abs(x[0, 128:])
    x[1, :128] = 0
    out = struct.pack("<II", rows, cols) + x.astype("<f4").tobytes()
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            w, s, b = mx.quantize(mx.array(x), group_size=group, bits=bits)
            d = mx.dequantize(w, s, b, group_size=group, bits=bits)
            w, s, b, d = (np.array(a) for a in (w, s, b, d))
            out += struct.pack("<III", bits, group, w.size) + w.astype("<u4").tobytes()
            out += s.astype("<f4").tobytes() + b.astype("<f4").tobytes() + d.astype("<f4").tobytes()
    return out


def main():
    folder = Path(sys.argv[1])
    rng = np.random.default_rng(20240611)
    folder.joinpath("gguf.bin").write_bytes(gguf_records(rng))
    folder.joinpath("affine.bin").write_bytes(affine_records(rng))


main()
