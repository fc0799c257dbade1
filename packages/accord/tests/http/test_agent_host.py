"""What a server runs for each connection, and what of it a wrapped host passes on."""

import sys

import pytest

import accord
from accord.http import CommandHost, Host, MeasuredHost, Quotas, SharedHost, WrappedHost
from accord.http.server.owner_quotas import OwnerGate
from accord.metrics import ServerMetrics


@pytest.mark.parametrize(
    ("hosted", "name"),
    [(accord.Agent("echo"), "echo"), ([sys.executable, "my agent.py"], f"{sys.executable} 'my agent.py'")],
)
def test_an_agent_and_a_command_become_hosts(hosted, name):
    host = Host.of(hosted)
    assert (host.name, Host.of(host)) == (name, host)


def test_a_command_is_a_list_of_words():
    with pytest.raises(ValueError, match="non-empty list of the program and its arguments, got str"):
        Host.of("my-agent --acp")


def test_a_wrapped_host_says_of_itself_what_the_other_says():
    measured = MeasuredHost(SharedHost(CommandHost(["my-agent"])), ServerMetrics())
    wrapped = WrappedHost(measured)
    assert (wrapped.name, wrapped.is_shared, wrapped.starts_processes) == ("my-agent", True, True)
    assert wrapped.metrics is measured.metrics is not None


def test_a_wrapped_host_lets_the_other_count_turns():
    gate = OwnerGate(Quotas(turns=1))
    assert WrappedHost(SharedHost(accord.Agent("echo"))).count_turns(gate)
    assert not WrappedHost(accord.Agent("echo")).count_turns(gate)
