# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py - the hand-made part of the corpora of gguf, safetensors, json and api_chat.

    python3 tests/fuzz/make_seeds.py tests/fuzz/corpus

Small files that reach every branch of the readers; standard library only.
"""
import json
import struct
import sys
from pathlib import Path

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B",
         U64: "<Q", I64: "<q", F64: "<d"}


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def payload(kind, v):
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        item, items = v
        return struct.pack("<IQ", item, len(items)) + b"".join(payload(item, i) for i in items)
    return struct.pack(CODES[kind], v)


def key(name, kind, v):
    return text(name) + struct.pack("<I", kind) + payload(kind, v)


def tensor(name, kind, dims, offset):
    return (text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
            + struct.pack("<IQ", kind, offset))


def gguf(keys=(), tensors=(), data=0, version=3, align=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys)
    head += b"".join(tensors)
    head += b"\0" * (-len(head) % align)
    return head + bytes(i % 251 for i in range(data))


SIZES = {0: (1, 4), 1: (1, 2), 30: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24),
         8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
         17: (256, 74), 39: (32, 17)}


def every_type():
    out, at = [], 0
    for kind, (block, size) in SIZES.items():
        out.append(tensor(f"blk.{kind}.weight", kind, [block, 2], at))
        at += (2 * size + 31) // 32 * 32
    return gguf(tensors=out, data=at)


def gguf_seeds():
    arch = key("general.architecture", STRING, "llama")
    scalars = [key(f"k{k}", k, 1) for k in CODES]
    one = [tensor("w", 0, [4, 2], 0)]
    yield "empty", gguf()
    yield "scalars", gguf([arch] + scalars)
    yield "arrays", gguf([key("w", ARRAY, (STRING, ["a", "", "bc"])), key("i", ARRAY, (I32, [1, -2])),
                          key("b", ARRAY, (BOOL, [0, 1])), key("f", ARRAY, (F32, [0.5])),
                          key("n", ARRAY, (ARRAY, [(U8, [1]), (STRING, ["x"])]))])
    yield "nested-deep", gguf([key("n", ARRAY, (ARRAY, [(ARRAY, [(ARRAY, [(ARRAY, [(U8, [])])])])]))])
    yield "types", every_type()
    yield "one", gguf([arch], one, 32)
    yield "version-2", gguf([arch], one, 32, version=2)
    yield "version-1", gguf([arch], one, 32, version=1)
    yield "big-endian", gguf([arch], one, 32, version=0x03000000)
    yield "alignment-64", gguf([key("general.alignment", U32, 64)],
                               [tensor("a", 0, [1], 0), tensor("b", 0, [1], 64)], 68, align=64)
    yield "alignment-bad", gguf([key("general.alignment", U32, 48)])
    yield "alignment-text", gguf([key("general.alignment", STRING, "32")])
    yield "part", gguf([key("split.no", U16, 0), key("split.count", U16, 3),
                        key("split.tensors.count", I32, 1)], one, 32)
    yield "falling", gguf(tensors=[tensor("c", 0, [8], 64), tensor("b", 0, [8], 32),
                                   tensor("a", 0, [8], 0)], data=96)
    yield "overlap", gguf(tensors=[tensor("a", 0, [9], 0), tensor("b", 0, [1], 32)], data=64)
    yield "misplaced", gguf(tensors=[tensor("a", 0, [1], 4)], data=64)
    yield "outside", gguf(tensors=[tensor("a", 0, [17], 0)], data=64)
    yield "overflow", gguf(tensors=[tensor("a", 0, [1 << 63, 2], 0)], data=64)
    yield "half-block", gguf(tensors=[tensor("a", 2, [33], 0)], data=64)
    yield "unknown-type", gguf(tensors=[tensor("a", 77, [32], 0)], data=64)
    yield "same-names", gguf(tensors=[tensor("a", 0, [1], 0), tensor("a", 0, [1], 32)], data=64)
    yield "same-keys", gguf([arch, arch])
    yield "no-dims", gguf(tensors=[tensor("s", 0, [], 0), tensor("e", 0, [0, 4], 0)], data=4)
    yield "five-dims", gguf(tensors=[tensor("a", 0, [1] * 5, 0)], data=64)
    yield "no-name", gguf(tensors=[tensor("", 0, [1], 0)], data=64)
    yield "bool-2", gguf([key("b", BOOL, 2)])
    yield "type-13", gguf([text("k") + struct.pack("<I", 13)])
    yield "claims-2-63", b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 0) + b"\0" * 19
    yield "array-2-63", gguf([text("k") + struct.pack("<IIQ", ARRAY, U32, 1 << 63)])
    yield "text-2-63", gguf([text("k") + struct.pack("<IQ", STRING, 1 << 63)])
    yield "cut", gguf([arch], one, 32)[:-5]


def st(header, data=0, pad=True):
    h = header.encode() if isinstance(header, str) else json.dumps(header, separators=(",", ":")).encode()
    if pad:
        h += b" " * (-len(h) % 8)
    return struct.pack("<Q", len(h)) + h + bytes(i % 251 for i in range(data))


def info(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def st_seeds():
    dtypes = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2,
              "I16": 2, "U16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I8": 1, "U8": 1, "BOOL": 1}
    every, at = {}, 0
    for name, size in dtypes.items():
        every[name] = info(name, [2], at, at + 2 * size)
        at += 2 * size
    for name, bits in (("F6_E2M3", 6), ("F6_E3M2", 6), ("F4", 4)):
        every[name] = info(name, [8], at, at + bits)
        at += bits
    triple = {"p.weight": info("U32", [2, 8], 0, 64), "p.scales": info("F32", [2, 1], 64, 72),
              "p.biases": info("F32", [2, 1], 72, 80)}
    yield "empty", st("{}")
    yield "metadata", st({"__metadata__": {"format": "pt", "k": ""}})
    yield "dtypes", st(every, at)
    yield "affine", st(triple, 80)
    yield "affine-halves", st({"p.weight": info("U32", [2, 8], 0, 64), "p.scales": info("BF16", [2, 2], 64, 72),
                               "p.biases": info("BF16", [2, 2], 72, 80)}, 80)
    yield "affine-broken", st({"p.weight": info("U32", [1, 8], 0, 32), "p.scales": info("U8", [2, 1], 32, 34),
                               "p.biases": info("F16", [1], 34, 36)}, 36)
    yield "escapes", st('{"a\\u002e\\n\\"\\\\\\ud83d\\ude00":{"d\\u0074ype":"U8","shape":[],"data_offsets":[0,1]},'
                        '"__metadata__":{"\\u006b":"\\u0000v"}}', 1)
    yield "spaces", st(' { "a" : { "data_offsets" : [ 0 , 4 ] ,\n"shape":[ 1 ],\t"dtype":"F32"} } ', 4)
    yield "order", st({"b": info("U8", [2], 2, 4), "a": info("U8", [2], 0, 2), "z": info("F32", [0], 2, 2)}, 4)
    yield "overlap", st({"a": info("U8", [4], 0, 4), "b": info("U8", [4], 2, 6)}, 6)
    yield "hole", st({"a": info("U8", [1], 0, 1), "b": info("U8", [1], 2, 3)}, 3)
    yield "outside", st({"a": info("U8", [9], 0, 9)}, 8)
    yield "short", st({"a": info("U8", [1], 0, 1)}, 8)
    yield "lying-shape", st({"a": info("F32", [3], 0, 8)}, 8)
    yield "overflow", st({"a": info("F32", [1 << 63, 2], 0, 8)}, 8)
    yield "nine-dims", st({"a": info("U8", [1] * 9, 0, 1)}, 1)
    yield "misaligned", st({"a": info("U8", [1], 0, 1), "b.weight": info("F32", [1], 1, 5)}, 5)
    yield "twice", st('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                      '"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', 2)
    yield "metadata-twice", st('{"__metadata__":{"a":"1","a":"2"}}')
    yield "field-twice", st('{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1)
    yield "field-unknown", st('{"a":{"dtype":"U8","x":1}}')
    yield "field-missing", st('{"a":{"dtype":"U8","shape":[1]}}')
    yield "dtype-unknown", st({"a": info("F33", [1], 0, 1)}, 1)
    yield "not-json", st("{nothing}")
    yield "surrogate", st('{"\\ud800":1}')
    yield "number", st('{"a":{"shape":[01]}}')
    yield "fraction", st('{"a":{"shape":[1.5]}}')
    yield "claims-2-63", struct.pack("<Q", 1 << 63) + b"{}" + b"\0" * 33
    yield "claims-more", struct.pack("<Q", 100) + b"{}"
    yield "cut", b"\x02\0\0"


def json_seeds():
    yield "values", b'{"n":null,"b":[true,false],"i":-7,"r":2.5e-3,"s":"h\\u00e9\\n\\ud83d\\ude00","o":{"x":{}}}'
    yield "large", b'[1000000000000000019884624838656,-9223372036854775809,9223372036854775807,"12345678901234567890"]'
    yield "nul", b'["a\\u0000b"]'
    yield "raw-nul", b"[1\0]"
    yield "twice", b'{"a":1,"a":2}'
    yield "deep", b"[" * 60 + b"]" * 60
    yield "tokenizer", json.dumps({"version": "1.0", "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
                                   "model": {"type": "BPE", "vocab": {"a": 0, "\u0120b": 1}, "merges": ["a b"]}}).encode()
    yield "scalar", b"1"
    yield "huge-real", b"1e999"
    yield "cut", b'{"a":[1,2'


def api_seeds():
    user = [{"role": "user", "content": "a"}]
    yield "chat", {"messages": [{"role": "developer", "content": "d", "name": "n"}] + user, "model": "m", "n": 2,
                   "seed": 1, "user": "u", "stream": True, "stream_options": {"include_usage": True}, "unknown": None}
    yield "chat-sampling", {"messages": user, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1,
                            "xtc_probability": 0.5, "xtc_threshold": 0.1, "repetition_penalty": 1.1,
                            "presence_penalty": -1, "frequency_penalty": 1e-3, "repetition_context_size": 0,
                            "presence_context_size": 1, "frequency_context_size": 2, "logit_bias": {"1": -100, "20": 1.5},
                            "max_completion_tokens": 5, "max_tokens": 6, "min_tokens": 1, "logprobs": True,
                            "top_logprobs": 3, "stop": ["a", "", "b"], "stop_token_ids": [1, 2], "ignore_eos": True,
                            "cache_prompt": False}
    yield "chat-template", {"messages": [{"role": "assistant", "content": "a", "reasoning": "r"}],
                            "chat_template_kwargs": {"enable_thinking": None, "x": [1, {"y": -0.5}], "z": "\u2028"},
                            "reasoning_effort": "high", "continue_final_message": True}
    yield "chat-parts", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a\x01\u00e9"},
                                                                 {"type": "input_text", "text": "b"}]},
                                      {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]}
    yield "chat-image", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": [0.1, null, true, {}]}'}}
    yield "chat-calls", {"messages": [{"role": "assistant", "content": None, "tool_calls": [call, {"function": {"name": "g", "arguments": {"b": 1}}}]},
                                      {"role": "tool", "tool_call_id": "c", "content": "r"}],
                         "tools": [{}], "tool_choice": "none"}
    yield "chat-bad-call", {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]}
    yield "chat-refused", {"messages": user, "response_format": {"type": "json_object"}}
    yield "chat-passed", {"messages": user, "response_format": {"type": "text"}, "store": False, "service_tier": "auto",
                          "modalities": ["text"], "hlg": {"enabled": False}, "length_penalty": 1.0}
    yield "text", {"prompt": "a", "logprobs": 5, "echo": True, "best_of": 1, "suffix": ""}
    yield "texts", {"prompt": ["a", "b"], "n": 3, "stop": "x"}
    yield "tokens", {"prompt": [1, 2, 3]}
    yield "token-lists", {"prompt": [[1], [2, 3]], "top_k": 99999999999}
    yield "tokenize", {"content": "a<|im_end|>", "add_special": True, "parse_special": False, "with_pieces": True}
    yield "tokenize-chat", {"messages": user, "add_generation_prompt": False, "reasoning_effort": "none"}
    yield "detokenize", {"tokens": [0, 4294967295], "model": "m"}
    yield "wrong-types", {"messages": "a", "prompt": {"a": 1}, "content": 1, "tokens": [1.5]}
    yield "wrong-range", {"messages": user, "prompt": "a", "temperature": -1}
    yield "many-unknown", {**{f"f{i}": i for i in range(40)}, "content": "a"}
    for name, fields in (("bias-key", {"logit_bias": {"01": 1}}), ("bias-value", {"logit_bias": {"1": "x"}}),
                         ("bias-array", {"logit_bias": [1]}), ("bias-huge", {"logit_bias": {"1": 1e200}}),
                         ("stop-nul", {"stop": "a\0b"}), ("stop-type", {"stop": [1]}), ("stops", {"stop": ["a"] * 1025}),
                         ("stop-id", {"stop_token_ids": [-1]}), ("min-over-max", {"max_tokens": 1, "min_tokens": 2}),
                         ("best-of", {"best_of": 3}), ("no-logprobs", {"logprobs": False, "top_logprobs": 1}),
                         ("usage-type", {"stream": True, "stream_options": {"include_usage": 1}}),
                         ("stream-options", {"stream": True, "stream_options": {"x": 1, "y": True}}),
                         ("no-stream", {"stream_options": {}}), ("n-too-many", {"n": 128, "prompt": ["a"] * 9}),
                         ("effort", {"reasoning_effort": "x"}), ("thinking", {"chat_template_kwargs": {"enable_thinking": 1}})):
        yield name, {"messages": user, "prompt": "a", **fields}
    for i, message in enumerate((1, {}, {"role": "x"}, {"role": "user"}, {"role": "user", "content": 1},
                                 {"role": "user", "content": [1]}, {"role": "user", "content": [{"type": "text"}]},
                                 {"role": "user", "content": [{"type": "input_audio"}]},
                                 {"role": "user", "content": "a", "tool_calls": [{}]}, {"role": "assistant", "tool_calls": 1},
                                 {"role": "assistant", "tool_calls": [{}]},
                                 {"role": "assistant", "tool_calls": [{"type": "x", "function": {"name": "f"}}]},
                                 {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]},
                                 {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[" * 70}}]},
                                 {"role": "assistant", "reasoning": 1}, {"role": "assistant", "audio": 1},
                                 {"role": "tool", "content": "a", "name": 1})):
        yield f"message-{i}", {"messages": [message]}
    yield "continue-user", {"messages": user, "continue_final_message": True}
    yield "deep", b'{"x":' + b"[" * 70
    yield "no-object", b"[1]"
    yield "cut", b'{"messages":[{"role":"us'
    yield "twice", b'{"prompt":"a","prompt":"b"}'
    yield "not-utf8", b'{"prompt":"\xff"}'


def http_seeds():
    """The first byte of each: how it comes (http_fuzz.c)."""
    host, chunked = b"Host: a\r\n", b"Transfer-Encoding: chunked\r\n"

    def get(path=b"/x", head=b""):
        return b"GET " + path + b" HTTP/1.1\r\n" + host + head + b"\r\n"

    def post(head, body, path=b"/p"):
        return b"POST " + path + b" HTTP/1.1\r\n" + host + head + b"\r\n" + body

    fields = b"".join(k + b": v\r\n" for k in (b"Origin", b"Sec-Fetch-Site", b"Sec-Fetch-Mode", b"Authorization",
                                               b"X-Api-Key", b"If-None-Match", b"Content-Type", b"X-Long-Name-Of-Nothing"))
    asks = {
        "fields": get(head=fields), "escaped": get(b"/a%20b?q#f"), "absolute": get(b"http://h:1/p?q"),
        "no-path": get(b"http://h"), "star": b"OPTIONS * HTTP/1.1\r\n\r\n", "head": b"HEAD /x HTTP/1.1\r\n\r\n",
        "same": get(b"/same"), "ahead": get() + post(b"Content-Length: 3\r\n", b"abc") + get(b"/y") * 3,
        "held": get(b"/hold") + get(b"/z") + get(b"/hold/2"), "early": get(b"/early") + get(),
        "early-body": post(b"Content-Length: 9\r\n", b"012345678", b"/early"),
        "chunks": post(chunked, b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: x\r\n\r\n") + get(),
        "expect": post(b"Expect: 100-continue\r\nContent-Length: 2\r\n", b"ok"), "upgrade":
        get(head=b"Connection: Upgrade\r\nUpgrade: websocket\r\n"), "close": get(head=b"Connection: close\r\n") + get(),
        "old": b"GET /x HTTP/1.0\r\n\r\n", "old-kept": b"GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "lines": b"\r\n\n" + get(), "no-request": b"\x16\x03\x01\x02", "version": b"GET / HTTP/2.0\r\n\r\n",
        "connect": b"CONNECT a:1 HTTP/1.1\r\n\r\n", "nul": get(b"/a%00"), "escape": get(b"/%g1"), "tab": get(b"/a\tb"),
        "two-hosts": get(head=host), "control": get(head=b"X: \x01\r\n"), "spaced": get(head=b"X : y\r\n"),
        "many": get(head=b"X: y\r\n" * 101), "large": get(head=b"X: " + b"a" * 4100 + b"\r\n"), "long": get(b"/" + b"a" * 3900),
        "large-body": post(b"Content-Length: 2001\r\n", b""), "large-chunk": post(chunked, b"7d1\r\n"),
        "chunk-end": post(chunked, b"2\r\nabXY0\r\n\r\n"), "chunk-line": post(chunked, b"2\rXab\r\n0\r\n\r\n"),
        "both-lengths": post(chunked + b"Content-Length: 4\r\n", b"0\r\n\r\n"), "two-lengths":
        post(b"Content-Length: 3\r\nContent-Length: 4\r\n", b"abcd"), "gzip": post(b"Transfer-Encoding: gzip\r\n", b"x"),
        "minus": post(b"Content-Length: -1\r\n", b""), "folded": get(head=b"Origin: a\r\n b\r\n"),
        "cut": get()[:20], "cut-body": post(b"Content-Length: 9\r\n", b"0123"), "wide": post(b"Content-Length: 1999\r\n", b"a" * 1999) * 3,
    }
    for i, (name, bytes_) in enumerate(asks.items()):
        yield name, bytes([(i % 8) | (i % 2) * 64]) + bytes_
    for how in (16, 32, 48, 80, 128, 144, 208, 240):
        yield f"how-{how}", bytes([how | 3]) + asks["ahead"] + asks["held"] + asks["cut-body"]


def main():
    root = Path(sys.argv[1])
    for name, seeds in (("gguf", gguf_seeds), ("safetensors", st_seeds), ("json", json_seeds),
                        ("api_chat", api_seeds), ("http", http_seeds)):
        root.joinpath(name).mkdir(parents=True, exist_ok=True)
        for seed, data in seeds():
            root.joinpath(name, seed).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


main()
