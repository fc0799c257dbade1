"""The `repr` of the main objects is one short line that says what the object is, and holds no secrets."""

import sys

import accord

SECRET = "s3cret-t0ken"
LONG = "word " * 1_000


async def test_the_main_objects_describe_themselves_in_one_line(tmp_path):
    shown = {}
    agent = accord.Agent("shy", version="1.2", store=accord.SqliteStore(tmp_path / "sessions.sqlite3"))

    @agent.on_prompt
    async def show(turn):
        async with turn.tool("Look", kind="read") as tool:
            shown.update(Session=turn.session, Turn=repr(turn), Tool=repr(tool))
            shown["Decision"] = await turn.ask("Push")
        await turn.say(LONG)

    client = accord.Client("editor", permissions=lambda question: question == SECRET)
    async with accord.connect(agent, client) as remote:
        session = await remote.new_session(tmp_path)
        reply = session.prompt(LONG)
        shown.update(Reply=reply, RemoteAgent=remote, RemoteSession=session, Client=client, Agent=agent)
        running = repr(reply)
        shown["Outcome"] = await reply
        lines = {name: repr(it) if not isinstance(it, str) else it for name, it in shown.items()}
        assert running == "Reply(running)"
        assert lines["Reply"] == "Reply(done)"
        assert lines["Agent"] == "Agent('shy', version='1.2')"
        assert lines["Client"] == "Client('editor', lends=['Permissions'])"
        assert lines["RemoteAgent"] == "RemoteAgent('shy 1.2', sessions=1)"
        assert lines["RemoteSession"] == f"RemoteSession({session.id!r}, cwd={str(tmp_path)!r})"
        assert lines["Session"] == f"Session({session.id!r}, cwd={str(tmp_path)!r})"
        assert lines["Turn"].startswith("Turn('word word")
        assert lines["Turn"].endswith(f"session={session.id!r})")
        assert lines["Tool"].startswith("Tool('Look', pending, id=")
        assert lines["Decision"].startswith("Decision(allowed=False")
        assert lines["Outcome"].startswith("Outcome('end_turn', text='word word")
        assert repr(accord.MemoryStore()) == "MemoryStore(sessions=0)"
        assert repr(accord.SqliteStore("a.db")) == "SqliteStore('a.db')"
        assert max(map(len, lines.values())) < 300
        await session.close()
        assert repr(session).endswith(", closed)")


async def test_the_arguments_of_an_agents_command_are_not_shown():
    script = (
        "import sys, json\n"
        "hello = json.loads(sys.stdin.readline())\n"
        "result = {'protocolVersion': 1}\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': hello['id'], 'result': result}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    async with accord.connect([sys.executable, "-c", script, "--key", SECRET]) as remote:
        assert repr(remote).startswith(f"RemoteAgent({sys.executable[:20]!r}"[:-1])
        assert SECRET not in repr(remote)
