"""Files lent to an agent."""
