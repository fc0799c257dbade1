"""`accord agent`: a coding agent with a real model, written with nothing but the public interface of Accord."""
