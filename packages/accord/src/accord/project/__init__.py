"""The folder that a session works in: a stranger's files are opened, listed and searched here, and git is asked."""
