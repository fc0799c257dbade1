"""Permission for what an agent wants to do."""
