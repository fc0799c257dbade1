"""Programs that are interrupted, that end without closing, and that fork: what they say, and that nothing is left."""

import os
import signal

import pytest

from tests.waiting import DEADLINE, wait_until


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def interrupt(process):
    """Press Ctrl-C, and return what the program printed, its errors, and its exit code."""
    process.send_signal(signal.SIGINT)
    return end(process)


def end(process):
    out, err = process.communicate(timeout=DEADLINE)
    return out.split(), err, process.returncode


REPORT = """
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


def test_ctrl_c_while_connecting_ends_the_agent(quick_agent, program):
    agent = quick_agent("silent")
    code = """
try:
    with accord.sync.connect(AGENT) as remote:
        print("connected")
"""
    process = program(code + REPORT, agent)
    agent.wait_for("initialize")
    assert interrupt(process) == (["interrupted", "1"], "", 0)
    assert is_gone(agent.pid)


@pytest.mark.parametrize("wait", ["reply.outcome()", "list(reply.iter_text())", "list(reply)", "session.cancel()"])
def test_ctrl_c_during_a_turn_cancels_it_and_ends_the_block_in_order(quick_agent, program, wait):
    agent = quick_agent()
    code = f"""
try:
    with accord.sync.connect(AGENT) as remote:
        session = remote.new_session("/")
        reply = session.prompt("wait" if "cancel" not in {wait!r} else "ignore")
        {wait}
        print("ended")
"""
    process = program(code + REPORT, agent)
    agent.wait_for("prompt wait" if "cancel" not in wait else "prompt ignore")
    assert interrupt(process) == (["interrupted", "1"], "", 0)
    assert agent.notes[-2:] == ["cancelled", "end of input"]
    assert is_gone(agent.pid)


def test_ctrl_c_while_the_program_does_something_else_cancels_the_turn_too(quick_agent, program):
    agent = quick_agent()
    code = """
try:
    with accord.sync.connect(AGENT) as remote:
        reply = remote.new_session("/").prompt("wait")
        print(next(reply.iter_text()))
        threading.Event().wait()
"""
    process = program(code + REPORT, agent)
    assert process.stdout.readline() == "waiting\n"
    assert interrupt(process) == (["interrupted", "1"], "", 0)
    assert agent.notes[-2:] == ["cancelled", "end of input"]


def test_ctrl_c_while_closing_ends_the_agent_at_once(quick_agent, program):
    agent = quick_agent("stubborn")
    code = """
try:
    with accord.sync.connect(AGENT, limits=accord.Limits(grace=1000.0)) as remote:
        remote.new_session("/")
"""
    process = program(code + REPORT, agent)
    agent.wait_for("end of input")
    assert interrupt(process) == (["interrupted", "1"], "", 0)
    assert is_gone(agent.pid)


def test_ctrl_c_in_a_function_that_asks_the_user_cancels_the_turn(quick_agent, program):
    agent = quick_agent()
    code = """
def may_it(question):
    print("asking")
    return input("Dig? ") == "y"

try:
    with accord.sync.connect(AGENT, accord.Client(permissions=may_it)) as remote:
        remote.new_session("/").prompt("ask").outcome()
"""
    process = program(code + REPORT, agent)
    assert process.stdout.readline() == "asking\n"
    out, _, code = interrupt(process)
    assert (out[-2:], code) == (["interrupted", "1"], 0)
    assert agent.notes[-2:] == ["cancelled", "end of input"]
    assert is_gone(agent.pid)


def test_an_answer_that_is_typed_reaches_the_agent(quick_agent, program):
    agent = quick_agent()
    code = """
client = accord.Client(permissions=lambda question: input() == "y")
print(accord.ask("ask", agent=AGENT, client=client).text)
"""
    process = program(code, agent)
    agent.wait_for("prompt ask")
    out, err = process.communicate("y\n", timeout=DEADLINE)
    assert (out, err) == ("yes\n", "")


@pytest.mark.parametrize(("how", "exit_code"), [("sys.exit(4)", 4), ("raise ValueError('no')", 1), ("os.abort()", -6)])
def test_a_program_that_ends_in_the_block_leaves_no_agent(quick_agent, program, how, exit_code):
    agent = quick_agent()
    code = f"""
with accord.sync.connect(AGENT) as remote:
    reply = remote.new_session("/").prompt("wait")
    print(next(reply.iter_text()))
    {how}
"""
    out, _, code = end(program(code, agent))
    assert (out, code) == (["waiting"], exit_code)
    wait_until(lambda: is_gone(agent.pid))


def test_a_program_that_never_closes_is_told_and_leaves_no_agent(quick_agent, program):
    agent = quick_agent()
    code = """
remote = accord.sync.open(AGENT)
print(remote.new_session("/").prompt("say hello").text)
"""
    out, err, code = end(program(code, agent, "-W", "default"))
    assert (out, code) == (["hello"], 0)
    assert "ResourceWarning: a connection of accord.sync was not closed" in err
    assert agent.notes[-1] == "end of input"
    assert is_gone(agent.pid)


def test_a_function_that_never_returns_does_not_keep_the_program_from_ending(quick_agent, program):
    agent = quick_agent()
    code = """
begun = threading.Event()
def may_it(question):
    begun.set()
    threading.Event().wait()

with accord.sync.connect(AGENT, accord.Client(permissions=may_it)) as remote:
    remote.new_session("/").prompt("ask")
    begun.wait()
print("ended")
"""
    out, err, code = end(program(code, agent))
    assert (out, code) == (["ended"], 0)
    assert "still runs after the end of its connection" in err
    assert is_gone(agent.pid)


def test_a_forked_process_is_told_that_it_cannot_use_the_connection(quick_agent, program):
    agent = quick_agent()
    code = """
with accord.sync.connect(AGENT) as remote:
    session = remote.new_session("/")
    print(session.prompt("say before").text)
    if (child := os.fork()) == 0:
        try:
            session.prompt("say child").text
        except RuntimeError as error:
            print("child:", "cannot be used in a forked process" in str(error))
            sys.exit(3)
    print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(session.prompt("say after").text)
"""
    out, err, code = end(program(code, agent))
    assert (out, err, code) == (["before", "child:", "True", "exit", "3", "after"], "", 0)
    assert agent.notes.count("prompt say") == 2
    assert is_gone(agent.pid)
