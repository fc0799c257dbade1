"""What the loop of chat completions keeps between turns."""

import pytest

import accord
from tests.adapters.script import Say

openai = pytest.importorskip("openai")


async def test_all_turns_of_all_sessions_share_one_client_that_ends_with_the_last_session(
    script, tmp_path, monkeypatch
):
    from tests.adapters.with_chat import Models

    made = []

    class Counted(openai.AsyncOpenAI):
        def __init__(self, **options):
            made.append(self)
            super().__init__(**options)

    monkeypatch.setattr(openai, "AsyncOpenAI", Counted)
    script.says(*([Say("Here.")] for _ in range(3)))
    with Models(script) as models:
        async with accord.connect(models.served()) as remote:
            first, second = await remote.new_session(tmp_path), await remote.new_session(tmp_path)
            for session in (first, first, second):
                await session.prompt("Are you there?")
            await first.close()
            assert [it.is_closed() for it in made] == [False]
            await second.close()
            assert [it.is_closed() for it in made] == [True]
