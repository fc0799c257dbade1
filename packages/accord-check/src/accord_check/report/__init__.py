"""Reports: what a run of the checks says, for a terminal, for programs, and for the pages of a CI system."""
