# SPDX-License-Identifier: Apache-2.0
"""jinja_cases.py - the conversations that every chat template is rendered with."""
TOOL = {"type": "function", "function": {"name": "weather", "description": "Says how <it> is & \"was\".", "parameters": {
    "type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "where"}, "unit": {"type": "string", "enum": ["C", "F"]},
        "days": {"type": ["integer", "null"], "minimum": -1, "default": None},
        "spots": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}}}},
    "return": {"type": "string"}}}
PLAIN = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {}}}
BARE = {"name": "bare", "description": "No wrapper", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "Hi, how's it? é"}
SAYS = {"role": "assistant", "content": "Fine."}
SYSTEM = {"role": "system", "content": "Be brief."}


def call(arguments, name="weather", content="", id="call12345"):
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


CALL = call({"city": "Ulm", "n": 1.5, "deep": {"a": [1, None, True, "x<y"], "b": {}}})
TEXTCALL = call("{\"city\": \"Ulm\"}")
BACK = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "{\"t\": 3}"}
DICTBACK = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": {"t": 3, "ok": True, "no": None}}
TWO = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "aaaaaaaaa", "type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}},
    {"id": "bbbbbbbbb", "type": "function", "function": {"name": "now", "arguments": {}}}]}
TWOBACK = [{"role": "tool", "tool_call_id": "aaaaaaaaa", "name": "weather", "content": "cold"},
           {"role": "tool", "tool_call_id": "bbbbbbbbb", "name": "now", "content": "noon"}]
THINKS = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes"}
REASONS = {"role": "assistant", "content": "Yes.", "reasoning_content": "Let me\nsee.", "thinking": "Let me\nsee."}
WILD = "tab\there \x00\x07\x1b end\u0085\u2028 “q” 😀 👩‍👩‍👧 ﬁ ß İ \r\n  <b>&amp;</b> {{ x }} {% y %} '\"\\ \xa0"
PARTS = {"role": "user", "content": [{"type": "text", "text": "parts"}, {"type": "image"}, {"type": "text", "text": " of it"}]}
MEDIA = {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "audio", "audio": "b.wav"},
                                     {"type": "video", "video": "c.mp4"}, {"type": "image_url", "image_url": {"url": "d"}},
                                     {"type": "text", "text": "What is it?"}]}
NUMBERS = {"int": 7, "big": 9007199254740993, "most": 9223372036854775807, "least": -9223372036854775808, "real": 0.1,
           "whole": 3.0, "tiny": 1e-7, "huge": 1e22, "minus_zero": -0.0, "yes": True, "none": None, "list": [1, 2.5, "x"]}
BASE = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "tools": None,
        "documents": None, "add_generation_prompt": True}
DOCUMENTS = [{"title": "A", "text": "first <doc>"}, {"title": "B é", "text": "second\nline", "doc_id": 2}]
LONG = [m for i in range(20) for m in ({"role": "user", "content": f"question {i}"}, {"role": "assistant", "content": f"answer {i}"})]

CASES = [{**BASE, **more} for more in [
    {"messages": [USER]},
    {"messages": [SYSTEM, USER]},
    {"messages": [USER, SAYS, USER]},
    {"messages": [USER], "tools": [TOOL]},
    {"messages": [USER, CALL, BACK], "tools": [TOOL]},
    {"messages": [USER, THINKS, USER], "enable_thinking": False},
    {"messages": [PARTS]},
    {"messages": [USER, SAYS], "add_generation_prompt": False},
    {"messages": [{"role": "system", "content": ""}, USER]},
    {"messages": [{"role": "system", "content": "  padded \n"}, {"role": "user", "content": "\n x \n\n"}]},
    {"messages": [SYSTEM, USER, TEXTCALL, BACK, SAYS, USER], "tools": [TOOL, PLAIN]},
    {"messages": [SYSTEM, USER, TWO, *TWOBACK], "tools": [TOOL, PLAIN], "enable_thinking": True},
    {"messages": [USER, TWO, *TWOBACK, SAYS, USER, CALL, DICTBACK], "tools": [TOOL, PLAIN, BARE]},
    {"messages": [USER, REASONS, USER], "enable_thinking": True},
    {"messages": [USER, {**CALL, "reasoning_content": "Ask it."}, BACK], "tools": [TOOL], "enable_thinking": True,
     "reasoning_effort": "high"},
    {"messages": [USER, REASONS, {"role": "user", "content": "/no_think again"}], "enable_thinking": False,
     "thinking": False, "reasoning_effort": "low"},
    {"messages": [MEDIA]},
    {"messages": [SYSTEM, MEDIA, SAYS, PARTS], "add_vision_id": True},
    {"messages": [{"role": "developer", "content": "Obey."}, USER]},
    {"messages": [{"role": "developer", "content": "Obey."}, {"role": "system", "content": "And."}, USER], "tools": [TOOL]},
    {"messages": [{"role": "user", "content": WILD}, {"role": "assistant", "content": WILD}, USER]},
    {"messages": [{"role": "system", "content": WILD}, {"role": "user", "content": ""}]},
    {"messages": [USER, call(NUMBERS)], "tools": [{"type": "function", "function": {
        "name": "n", "description": WILD, "parameters": {"type": "object", "properties": NUMBERS}}}]},
    {"messages": [USER, call([1, 2]), {"role": "tool", "content": [{"type": "text", "text": "part"}]}], "tools": [TOOL]},
    {"messages": [USER, {"role": "assistant", "content": None}, USER]},
    {"messages": [{"role": "user", "content": None}]},
    {"messages": [USER], "documents": DOCUMENTS, "citation_mode": "fast"},
    {"messages": [SYSTEM, USER], "documents": DOCUMENTS, "tools": [TOOL], "controls": {"length": "short"}},
    {"messages": [USER, USER]},
    {"messages": [SAYS, USER]},
    {"messages": [USER, SAYS, {"role": "system", "content": "late"}, USER]},
    {"messages": [{"role": "critic", "content": "?"}, USER]},
    {"messages": []},
    {"messages": [SYSTEM]},
    {"messages": [{"content": "no role"}]},
    {"messages": [{"role": "user"}]},
    {"messages": LONG, "tools": [PLAIN]},
    {"messages": [USER, {"role": "assistant", "content": "Once upon"}], "add_generation_prompt": False,
     "continue_final_message": True},
    {"messages": [USER, CALL, BACK, {"role": "assistant", "content": [{"type": "text", "text": "It is 3."}]}, PARTS],
     "tools": [TOOL], "builtin_tools": ["brave_search", "code_interpreter"], "date_string": "26 Jul 2024"},
    {"messages": [USER, {"role": "ipython", "content": "out"}], "custom_tools": [TOOL], "tools_in_user_message": False},
    {"messages": [USER], "tools": []},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, "b", {"text": "c"}]}]},
    {"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER], "enable_thinking": True},
    {"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": None, "refusal": None}, USER]},
]]
