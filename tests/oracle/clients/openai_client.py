# SPDX-License-Identifier: Apache-2.0
"""openai_client.py - OpenAI's SDK for Python against a running server: QUERN_URL. What the SDK makes of
our answers, errors included, and that an abort ends the work. The last line is the sum."""
import asyncio
import os
import re
import sys
import time
import traceback
import urllib.request

import openai

BASE = os.environ.get("QUERN_URL", "http://127.0.0.1:8080")
OPTIONS = {"base_url": f"{BASE}/v1", "api_key": os.environ.get("QUERN_API_KEY", "none"), "max_retries": 0}
client = openai.OpenAI(**OPTIONS)
MODEL = client.models.list().data[0].id
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
LONG = [{"role": "user", "content": "Write a long story about a miller who lives by the river."}]


def running():
    with urllib.request.urlopen(f"{BASE}/metrics") as reply:
        text = reply.read().decode()
    return int(re.search(r"^quern_requests_running(?:\{[^}]*\})? (\d+)", text, re.M)[1])


def until(what, holds, limit_s=60):
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, f"waited {limit_s} s in vain until {what}"
        time.sleep(0.02)


def answer(**more):
    return client.chat.completions.create(model=MODEL, messages=CAPITAL, temperature=0, max_tokens=24, **more)


def models_are_listed():
    models = client.models.list()
    assert models.object == "list" and models.data[0].object == "model"
    assert client.models.retrieve(MODEL).id == MODEL


def whole_and_streamed_answers_are_equal():
    whole = answer()
    assert "Paris" in whole.choices[0].message.content
    assert whole.choices[0].message.role == "assistant"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    text, finish, usage = "", None, None
    for chunk in answer(stream=True, stream_options={"include_usage": True}):
        if not chunk.choices:
            usage = chunk.usage
            continue
        assert chunk.usage is None
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    assert text == whole.choices[0].message.content
    assert finish == whole.choices[0].finish_reason
    assert usage.completion_tokens == whole.usage.completion_tokens


def usage_comes_only_when_asked():
    assert all(chunk.usage is None and chunk.choices for chunk in answer(stream=True))


def stream_helper_assembles_the_answer():
    with client.chat.completions.stream(model=MODEL, messages=CAPITAL, temperature=0, max_tokens=16) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content == answer().choices[0].message.content


def closing_a_stream_ends_the_work():
    stream = client.chat.completions.create(model=MODEL, messages=LONG, max_tokens=1500, stream=True)
    for i, _ in enumerate(stream):
        if i == 4:
            break
    stream.close()
    until("the server rests", lambda: running() == 0)


def cancelling_a_task_ends_the_work():
    async def run():
        async with openai.AsyncOpenAI(**OPTIONS) as c:
            task = asyncio.create_task(c.chat.completions.create(model=MODEL, messages=LONG, max_tokens=1500))
            while await asyncio.to_thread(running) == 0:
                await asyncio.sleep(0.02)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return True
        return False

    assert asyncio.run(run())
    until("the server rests", lambda: running() == 0)


def a_timeout_of_the_client_ends_the_work():
    try:
        client.with_options(timeout=0.4).chat.completions.create(model=MODEL, messages=LONG, max_tokens=100000, logit_bias={})
    except openai.APITimeoutError:
        until("the server rests", lambda: running() == 0)
    except openai.BadRequestError as e:  # more tokens than the context holds is refused by name
        assert e.param in ("max_tokens", "max_completion_tokens"), e


def choices_and_logprobs():
    reply = client.chat.completions.create(model=MODEL, messages=CAPITAL, n=2, seed=7, temperature=1, max_tokens=6,
                                           logprobs=True, top_logprobs=3)
    assert [c.index for c in reply.choices] == [0, 1]
    for choice in reply.choices:
        assert choice.logprobs.content
        for entry in choice.logprobs.content:
            tops = [t.logprob for t in entry.top_logprobs]
            assert len(tops) == 3 and tops == sorted(tops, reverse=True) and entry.logprob <= 0
            assert bytes(entry.bytes).decode(errors="replace") == entry.token or entry.bytes
    again = client.chat.completions.create(model=MODEL, messages=CAPITAL, n=2, seed=7, temperature=1, max_tokens=6)
    assert [c.message.content for c in again.choices] == [c.message.content for c in reply.choices]


def stop_strings_end_the_answer():
    reply = answer(stop=["France"])
    assert "France" not in reply.choices[0].message.content and reply.choices[0].finish_reason == "stop"


def text_completions():
    ask = {"model": MODEL, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 4}
    whole = client.completions.create(**ask)
    assert "Paris" in whole.choices[0].text
    assert "".join(c.choices[0].text for c in client.completions.create(**ask, stream=True)) == whole.choices[0].text


def refused(kind, param=None, **ask):
    try:
        client.chat.completions.create(**{"model": MODEL, "messages": CAPITAL, "max_tokens": 1, **ask})
    except kind as e:
        assert param is None or e.param == param, e
        return
    raise AssertionError(f"not refused: {ask}")


def errors_become_the_right_classes():
    refused(openai.BadRequestError, "temperature", temperature=-1)
    refused(openai.BadRequestError, "messages", messages=[])
    refused(openai.BadRequestError, None, top_logprobs=99, logprobs=True)
    try:
        client.get("/nowhere", cast_to=object)
    except openai.NotFoundError:
        pass
    else:
        raise AssertionError("an unknown route was found")


TESTS = [models_are_listed, whole_and_streamed_answers_are_equal, usage_comes_only_when_asked, stream_helper_assembles_the_answer,
         closing_a_stream_ends_the_work, cancelling_a_task_ends_the_work, a_timeout_of_the_client_ends_the_work,
         choices_and_logprobs, stop_strings_end_the_answer, text_completions, errors_become_the_right_classes]


def main():
    failed = 0
    for test in TESTS:
        try:
            test()
            print(f"ok   {test.__name__.replace('_', ' ')}")
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__.replace('_', ' ')}\n{traceback.format_exc()}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
