"""Tools: their definitions for clients and the way from a client's arguments to a call. Runs in the front."""
