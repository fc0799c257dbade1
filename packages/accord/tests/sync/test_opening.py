"""`accord.open`: a connection without a block, and who ends it if its author does not."""

import asyncio
import gc

import pytest

import accord
from tests.sync.test_programs import end, is_gone
from tests.waiting import eventually


def drop(held):
    """Forget what this list holds."""
    held.clear()
    gc.collect()


async def test_an_opened_agent_is_used_until_it_is_closed(quick_agent):
    agent = quick_agent()
    remote = await accord.open(agent.command)
    session = await remote.new_session("/")
    assert (await session.prompt("say hello")).text == "hello "
    await remote.close()
    await remote.close()
    assert is_gone(agent.pid)
    assert not session.is_open


async def test_closing_ends_the_trace(quick_agent, tmp_path):
    remote = await accord.open(quick_agent().command, trace=tmp_path / "wire.jsonl")
    await remote.close()
    assert '"initialize"' in (tmp_path / "wire.jsonl").read_text()


async def test_a_connection_in_a_block_may_be_closed_before_its_end(quick_agent):
    agent = quick_agent()
    async with accord.connect(agent.command) as remote:
        await remote.close()
        assert is_gone(agent.pid)
        with pytest.raises(accord.ConnectionClosed):
            await remote.new_session("/")


async def test_an_agent_that_cannot_be_opened_leaves_nothing():
    with pytest.raises(accord.ConnectionClosed, match="no-such-agent"):
        await accord.open("no-such-agent")


async def test_an_opened_agent_lives_as_long_as_one_of_its_sessions_is_used(quick_agent):
    agent = quick_agent()
    held = [await (await accord.open(agent.command)).new_session("/")]
    gc.collect()
    assert (await held[0].prompt("say still here")).text == "still here "
    with pytest.warns(ResourceWarning, match=r"call `await remote.close\(\)` after `accord.open`"):
        drop(held)
    await eventually(lambda: is_gone(agent.pid))
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others, timeout=30) if others else None


async def test_a_reply_keeps_its_agent_open(quick_agent):
    agent = quick_agent()

    async def ask():
        return await (await (await accord.open(agent.command)).new_session("/")).prompt("say all")

    async def ask_and_forget():
        text = (await ask()).text
        gc.collect()
        return text

    with pytest.warns(ResourceWarning):
        assert await ask_and_forget() == "all "
    await eventually(lambda: is_gone(agent.pid))


def task_named(name):
    return next((task for task in asyncio.all_tasks() if task.get_name() == name), None)


async def test_a_task_that_reads_updates_keeps_its_agent_open(quick_agent, recwarn):
    agent, opened = quick_agent(), asyncio.Event()

    async def read():
        session = await (await accord.open(agent.command)).new_session("/")
        opened.set()
        async for _ in session.updates():
            pass

    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: loop.create_task(read(), name="reader") and None)
    await opened.wait()
    gc.collect()
    assert [str(it.message) for it in recwarn] == []
    task_named("reader").cancel()
    await eventually(lambda: task_named("reader") is None)
    gc.collect()
    assert "after `accord.open`" in str(recwarn.pop(ResourceWarning).message)
    await eventually(lambda: is_gone(agent.pid))


async def test_a_block_keeps_its_agent_although_only_an_observer_knows_the_task(quick_agent):
    agent, opened = quick_agent(), asyncio.Event()

    async def wait_for_a_change():
        async with accord.connect(agent.command) as remote:
            session = await remote.new_session("/")
            changed = asyncio.get_running_loop().create_future()
            session.on_change(changed.set_result)
            opened.set()
            await changed

    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: loop.create_task(wait_for_a_change(), name="observer") and None)
    await opened.wait()
    gc.collect()
    task_named("observer").cancel()
    await eventually(lambda: is_gone(agent.pid))


RUNS = {
    "nothing refers to it": """
async def forget():
    await use()
accord.run(forget())
""",
    "its loop was closed": "remote = accord.run(use())",
    "its loop can still run": "loop = asyncio.new_event_loop()\nremote = loop.run_until_complete(use())",
    "its loop runs in another thread": """
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
remote = asyncio.run_coroutine_threadsafe(use(), loop).result()
""",
}


@pytest.mark.usefixtures("fresh_programs")  # a fork does not free what an interpreter frees at its end
@pytest.mark.parametrize("how", RUNS)
def test_a_program_that_does_not_close_an_opened_agent_is_told_and_leaves_none(quick_agent, program, how):
    agent = quick_agent()
    code = f"""
import asyncio

async def use():
    remote = await accord.open(AGENT)
    print((await (await remote.new_session("/")).prompt("say hello")).text)
    return remote

{RUNS[how]}
"""
    out, err, code = end(program(code, agent, "-W", "default"))
    assert (out, code) == (["hello"], 0)
    assert "ResourceWarning" in err
    assert "Traceback" not in err
    assert "never awaited" not in err
    assert is_gone(agent.pid)
