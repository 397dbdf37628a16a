"""The nodes that share a store, and the runs that wait for one of them."""
