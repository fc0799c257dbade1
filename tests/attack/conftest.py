"""This folder is a package, whose programs run as processes of their own."""
