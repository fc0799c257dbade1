"""The registry of agents, against a registry on this machine whose packages and archives are made in the tests."""
