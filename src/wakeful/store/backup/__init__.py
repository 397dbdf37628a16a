"""Everything in a store, copied as it was at one moment, and put into an empty one."""
