"""What the user has set: agents with names, and which files of projects are trusted."""
