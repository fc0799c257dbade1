"""Limits of agents' processes: memory, processor time, and how many they are.

    CommandHost(["my-agent"], limits=ProcessLimits(memory="2G", cpus=2, tasks=512))
    CommandHost(["my-agent"], limits=ProcessLimits(memory="2G"), container=Container("my/image"))

The kernel enforces the limits, so an agent and everything it starts count together. There are three ways:

| module | the way | where |
|---|---|---|
| `cgroup` | a control group of its own for each agent | Linux, where a group is delegated to the server |
| `cgroup` | a scope of systemd | Linux, where systemd runs and no group is delegated |
| `container` | a container | where podman or docker is |

Without one of them, a server with limits does not start. This package knows nothing of agents or HTTP.
"""
