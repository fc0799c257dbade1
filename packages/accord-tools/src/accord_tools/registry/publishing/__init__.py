"""For those who publish agents: checks entries as the registry does, builds its files, and tries what an entry says."""
