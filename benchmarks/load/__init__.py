"""Many connections at once to one server: what each weighs, how long a round trip takes, and whether all arrives.

    __main__ ──┬── server     an agent behind `accord.http.serve`, which is what `accord serve` runs
               ├── clients    those who listen: their updates are numbered, and each number is checked
               └── clients    those who ask now and then: their round trips are timed

Listeners and askers are processes of their own, so that what is timed is the server's pace and not the price of
checking what it sent.
"""
