"""The trace context of a request goes along with what a client asks other agents meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import accord
from tests.client.conftest import Scripted, shake_hands

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2"}
RESUME = {"sessionCapabilities": {"resume": {}}}


def delegating(target: Scripted, restart: accord.Restart | bool = False, died: asyncio.Event | None = None) -> Any:
    """An agent that passes each prompt on to another agent."""
    agent = accord.Agent("outer")

    @agent.on_prompt
    async def delegate(turn: accord.Turn) -> None:
        async with accord.connect(target, restart=restart) as remote:
            session = await remote.new_session("/")
            if died is not None:
                await remote.peer.connection.closed()
                died.set()
            await turn.say((await session.prompt(turn.text)).text)

    return agent


async def test_the_trace_of_a_prompt_reaches_the_agent_that_the_work_is_delegated_to() -> None:
    target = Scripted()
    async with accord.connect(delegating(target)) as remote:
        reply = (await remote.new_session("/")).prompt("go", meta=TRACE | {"_example.com": 1})
        inner = await target.agents.get()
        await shake_hands(inner)
        opening = await inner.expect("session/new")
        assert opening["params"]["_meta"] == TRACE
        inner.answer(opening, {"sessionId": "s"})
        prompt = await inner.expect("session/prompt")
        assert prompt["params"]["_meta"] == TRACE
        inner.answer(prompt, {"stopReason": "end_turn"})
        await reply
        await inner.close()


async def test_the_trace_of_a_prompt_that_waits_for_a_restart_is_not_lost() -> None:
    target, died = Scripted(), asyncio.Event()
    agent = delegating(target, accord.Restart(first_pause=0.0), died)
    async with accord.connect(agent) as remote:
        reply = (await remote.new_session("/")).prompt("go", meta=TRACE)
        first = await target.agents.get()
        await shake_hands(first, RESUME)
        first.answer(await first.expect("session/new"), {"sessionId": "s"})
        await first.close()
        await died.wait()
        second = await target.agents.get()
        await shake_hands(second, RESUME)
        second.answer(await second.expect("session/resume"), {})
        prompt = await second.expect("session/prompt")
        assert prompt["params"]["_meta"] == TRACE
        second.answer(prompt, {"stopReason": "end_turn"})
        await reply
        await second.close()


async def test_the_callers_own_trace_context_counts_before_that_of_the_request() -> None:
    target = Scripted()
    agent = accord.Agent("outer")

    @agent.on_prompt
    async def delegate(_: accord.Turn) -> None:
        async with accord.connect(target) as remote:
            await remote.new_session("/", meta={"traceparent": "own"})

    async with accord.connect(agent) as remote:
        reply = (await remote.new_session("/")).prompt("go", meta=TRACE)
        inner = await target.agents.get()
        await shake_hands(inner)
        opening = await inner.expect("session/new")
        assert opening["params"]["_meta"] == TRACE | {"traceparent": "own"}
        inner.answer(opening, {"sessionId": "s"})
        await reply
        await inner.close()


async def test_a_client_with_spans_sends_their_context_and_records_each_request() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="needs pip install opentelemetry-sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    target = Scripted()

    async def play() -> list[str]:
        inner = await target.agents.get()
        await shake_hands(inner)
        opening = await inner.expect("session/new")
        inner.answer(opening, {"sessionId": "s"})
        prompt = await inner.expect("session/prompt")
        inner.answer(prompt, {"stopReason": "end_turn"})
        return [call["params"]["_meta"]["traceparent"] for call in (opening, prompt)]

    playing = asyncio.create_task(play())
    async with accord.connect(target, spans=accord.Spans(provider.get_tracer("test"))) as remote:
        await (await remote.new_session("/")).prompt("go")
        sent = await playing
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"initialize", "session/new", "session/prompt"}
    ids = [format(spans[name].context.span_id, "016x") for name in ("session/new", "session/prompt")]
    assert [parent.split("-")[2] for parent in sent] == ids


@pytest.mark.parametrize("version", [1, 2])
async def test_the_client_s_span_of_a_turn_has_its_end_its_tokens_and_the_cost(version: int) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="needs pip install opentelemetry-sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = accord.Agent("costly", unstable=True)

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        await turn.say("first")
        await turn.usage(900, 1_000, cost=0.25)
        turn.tokens(7, 3, thought=2)
        await turn.say("last")

    spans = accord.Spans(provider.get_tracer("test"))
    async with accord.connect(agent, spans=spans, versions=[version], unstable=True) as remote:
        await (await remote.new_session("/")).prompt("go")
    (span,) = [it for it in exporter.get_finished_spans() if it.name == "session/prompt" and it.kind.name == "CLIENT"]
    attributes = span.attributes
    assert attributes is not None
    assert attributes["acp.stop_reason"] == "end_turn"
    assert attributes["gen_ai.response.finish_reasons"] == ("end_turn",)
    usage = [attributes[f"gen_ai.usage.{kind}_tokens"] for kind in ("input", "output", "reasoning.output")]
    assert usage == [7, 3, 2]
    assert (attributes["acp.session.cost"], attributes["acp.session.currency"]) == (0.25, "USD")
    assert (attributes["acp.context.used"], attributes["acp.context.size"]) == (900, 1_000)
