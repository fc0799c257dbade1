"""An agent that asks for files and takes no answers."""

import asyncio

from accord import Limits, v1
from accord.services.file_service import Files
from tests.waiting import eventually

SIZE = 1_000_000
READS = 50


async def test_an_agent_that_asks_for_files_and_takes_none_does_not_fill_the_memory(lend, session, project):
    """Requests are small and files are not: each waits for room before it is read."""
    (project / "large.txt").write_text("x" * SIZE)
    files = Files()
    async with lend(files, sessions=[session], limits=Limits(backlog=SIZE)) as agent:
        ours, theirs = agent.other.connection, agent.connection
        theirs.transport.pause_reading()
        path = str(project / "large.txt")
        reads = [asyncio.create_task(agent.request(v1.ReadTextFileRequest(session.id, path))) for _ in range(READS)]
        await eventually(lambda: ours.statistics().handling + ours.statistics().frames_out > READS)
        await eventually(lambda: ours._outbox.full)
        for _ in range(READS):
            await asyncio.to_thread(project.stat)  # as many turns of the loop and of threads as the reads would take
        assert ours.transport.unsent < 4 * SIZE
        theirs.transport.resume_reading()
        assert [len(answer.content) for answer in await asyncio.gather(*reads)] == [SIZE] * READS
