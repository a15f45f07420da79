"""The escape battery as data: attacks on a cage, and what their answers mean. Runs nothing by itself."""
