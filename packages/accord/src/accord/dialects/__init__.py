"""What the versions of the protocol say, and how: all that knows a version, but the wire types themselves."""
