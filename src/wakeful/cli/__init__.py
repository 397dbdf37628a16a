"""Commands. Everything but `serve`, `migrate` and `doctor` speaks REST to a running server."""
