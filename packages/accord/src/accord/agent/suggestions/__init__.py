"""Next edit suggestions on the agent's side: what an author registers, the mirrors of documents, and the messages."""
