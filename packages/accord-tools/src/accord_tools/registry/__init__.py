"""The registry of agents: an index that lists agents by id, how each is installed, and what is installed here.

    sources, index, entry      where the index is, what it says, each entry read leniently
    platforms, launching       which kind of distribution fits this machine, and the command that it means
    installing, unpacking      installs an agent once, into a folder of its own
    installed, finding         what is installed, and what a name means
    agreed                     checksums: remembered from the first install, and in the lock file of a team
    publishing                 for authors of agents: check, build and verify entries

Nothing here starts an agent; `accord_tools.configuration.resolving` turns a name into how the agent is reached.
"""
