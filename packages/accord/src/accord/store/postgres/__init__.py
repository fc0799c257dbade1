"""Sessions in PostgreSQL, which the processes of several machines share: connections, statements and commits."""
