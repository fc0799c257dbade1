"""Agents whose features a test uses from the other side, in this program or, by their name, in a process."""

import asyncio
import sys

import accord
from accord import v1

DEFAULT = accord.Endpoint("anthropic", "https://api.example", {"X-Api-Key": "own-s3cret"})


def meta(**options):
    """Answers with what it was sent, and describes its sessions."""
    agent = accord.Agent("meta", **options)

    @agent.on_session
    def opened(session):
        session.answer_meta["got"] = session.meta

    @agent.on_prompt
    async def answer(turn):
        turn.answer_meta["got"] = turn.meta
        if turn.text == "describe":
            await turn.session.set_info_meta({"_example.com/colour": "red"})
        if turn.text == "describe again":
            await turn.session.set_info_meta({"_example.com/size": [1]})
        if turn.text == "forget":
            await turn.session.set_info_meta(None)
        await turn.say(repr(turn.session.info_meta))

    return agent


def prompted():
    """Says what its system prompt is."""
    agent = accord.Agent("prompted", system_prompts=["append", "override"])

    @agent.on_prompt
    async def answer(turn):
        own, asked = "You are a librarian.", turn.session.system_prompt
        await turn.say(own if asked is None else asked.applied_to(own))

    return agent


def archivist(**options):
    """Keeps sessions, and waits for a cancel when it is told to."""
    agent = accord.Agent("archivist", **{"unstable": True} | options)

    @agent.on_prompt
    async def answer(turn):
        if turn.text == "wait":
            await turn.say("waiting")
            await asyncio.Event().wait()
        await turn.say(f"title {turn.session.title}")

    return agent


def account():
    """Has one login, and tells the account."""
    agent, users = accord.Agent("account", unstable=True), []
    agent.on_prompt(lambda _: None)

    @agent.login("account", "Account")
    def log_in():
        users.append(v1.AuthAccount("ada@example.com", active=True))

    @agent.on_logout
    def log_out():
        users.clear()

    @agent.on_auth_status
    def status():
        return users

    return agent


def routed():
    """Says where its models are."""
    agent = accord.Agent("routed")
    main = agent.provider("main", supports=["anthropic", "openai"], required=True, default=DEFAULT)
    agent.provider("other", supports=["_example.com"])

    @main.check
    async def check(endpoint):
        if "refused" in endpoint.base_url:
            return False
        if "broken" in endpoint.base_url:
            raise ValueError(f"401 for {dict(endpoint.headers)}")
        return True

    @agent.on_prompt
    async def answer(turn):
        for name in ("main", "other"):
            endpoint = turn.provider(name)
            await turn.say(f"{endpoint!r} {endpoint and sorted(endpoint.headers.values())}\n")

    return agent


AGENTS = {function.__name__: function for function in (meta, prompted, archivist, account, routed)}

if __name__ == "__main__":
    AGENTS[sys.argv[1]]().run()
