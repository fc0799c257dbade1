"""What only LangGraph has: other interrupts, and a checkpointer of the author."""

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

import accord
from accord_adapters import langgraph as adapter
from tests.adapters.script import Say
from tests.adapters.with_langgraph import graph_of

REQUEST = {
    "action_requests": [{"name": "delete", "args": {"path": "a"}}, {"name": "delete", "args": {"path": "b"}}],
    "review_configs": [],
}


def asking(value):
    """A graph that interrupts with this value, and says what it resumes with."""

    async def ask(_):
        return {"messages": [AIMessage(str(interrupt(value)))]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph.compile()


async def test_a_request_of_langchain_s_middleware_is_one_question_for_each_action(tmp_path):
    client = accord.Client(permissions=lambda question: question.tool_call.raw_input == {"path": "a"})
    async with accord.connect(adapter.serve(asking(REQUEST)), client) as remote:
        outcome = await (await remote.new_session(tmp_path)).prompt("Delete")
        assert "'approve'" in outcome.text
        assert "'reject'" in outcome.text
        assert [(it.title, it.raw_input, it.status) for it in outcome.tool_calls][1][2] == "failed"


@pytest.mark.parametrize("allow", [True, False])
async def test_any_other_interrupt_is_a_question(tmp_path, allow):
    titles = []

    def decide(question):
        titles.append(question.title)
        return allow

    agent = adapter.serve(asking({"question": "Go on?"}))
    async with accord.connect(agent, accord.Client(permissions=decide)) as remote:
        assert (await (await remote.new_session(tmp_path)).prompt("Go")).text == str(allow)
    assert titles == ["Go on?"]


async def test_an_author_answers_interrupts_with_a_function(tmp_path):
    async def answer(turn, value):
        return f"{turn.text}: {value}"

    agent = adapter.serve(asking("How?"), on_interrupt=answer)
    async with accord.connect(agent) as remote:
        assert (await (await remote.new_session(tmp_path)).prompt("Fast")).text == "Fast: How?"


async def test_a_checkpointer_of_the_author_keeps_the_state_of_the_session(tmp_path, script):
    saver = InMemorySaver()
    script.says([Say("One.")], [Say("Two.")])
    async with accord.connect(adapter.serve(graph_of(script, checkpointer=saver))) as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("First")
        await session.prompt("Second")
        kept = saver.get({"configurable": {"thread_id": session.id}})
    said = [it.content for it in kept["channel_values"]["messages"] if isinstance(it, HumanMessage)]
    assert said == ["First", "Second"]
    assert script.asked[1].count("First") == 1
