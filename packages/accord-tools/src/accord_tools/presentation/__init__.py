"""What the command line and the chat show alike: styled text in rows, and the words and signs of a session's work."""
