"""One agent an SDK. Each does what a prompt's text says; `benchmarks/README.md` has the table."""
