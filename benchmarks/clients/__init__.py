"""One client an SDK. Any of them can drive any agent; `benchmarks/README.md` has the command line."""
