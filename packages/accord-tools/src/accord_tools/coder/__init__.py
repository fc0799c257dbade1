"""`accord agent`: a coding agent with a real model, written only with the public interface of Accord."""
