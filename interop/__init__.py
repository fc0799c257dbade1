"""Accord with other people's implementations: what each pair of an agent and a client can do together.

Data's way: a behaviour (`behaviours/*.json`: steps, and what must come of them) -> a client program (`clients/`, one
for each SDK, all of the same small language of steps) that is started with an agent's command -> one line of JSON a
step -> `matching` compares it with what was expected -> an outcome: passed, or what was wrong. `outcomes.json` declares
those that are not ours to mend, each with its reason, and the table in `docs/interop.md` is made from what came out.
What is the fault of others is shown again in `faults/`, without any of our code (`reproductions`).
"""
