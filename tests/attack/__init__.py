"""Attacks on a server, its hosts, a client, a chain, a chat, a coding agent and a store, while honest peers work.

Afterwards nothing may be left.

Every program of a run is a process of its own, so that the memory of an attacker is never counted as ours:

    runner (rounds.py, in the test)
      ├── server    victim_server.py   an `Agent` with a `SqliteStore`: HTTP/1.1, HTTP/2, WebSocket and TLS on one event
      │                                loop, a second server on uvloop in a second thread, a server of commands, one
      │                                of a chain, and two hosts of one service
      ├── client    victim_client.py   `accord.connect` to honest agents in two threads, and to hostile ones: directly,
      │             victim_chat.py     as a proxy or the agent of a chain, and in a chat without a terminal
      ├── honest    victim_client.py   honest clients of the server and nothing else
      └── attackers attackers/         one process for each attack: raw sockets and pipes, and a model that misleads a
                                       coding agent in a hostile folder
                    hostiles/          hostile agents and servers, which the client is told to connect with

A round has a seed. The seed chooses a few attacks, which run at the same time for a few seconds:

1. The honest peers work. Each turn has updates with a mark of its own, so that a lost, a swapped or a foreign update is
   seen, and some turns have permissions, files, forms, a cancellation, or a session that is loaded again.
2. The attackers begin, and end by themselves: each has a limit of time, of bytes and of memory.
3. The honest peers finish their turns and leave. Each turn has to be complete and right.
4. The victims count what they have: memory, descriptors, child processes, tasks, and living objects of Accord's own
   classes. All of it has to come back to what was counted before the first attack. Here is the one place where the run
   waits for something without an event: it asks again until the numbers are right, or until `Bounds.settle` is over.

What has to hold is in `bounds.py`. Standstills of an event loop are measured in the processor time of its own thread
between two beats of a probe, so that a busy machine is not mistaken for an attack that got through.

A failed round prints its seed, its attacks and what was seen. `pytest -m attack --seed N` runs that round again.
"""
