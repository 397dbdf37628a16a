"""Every operation that reads or changes something, one transaction each, in a folder per noun."""
