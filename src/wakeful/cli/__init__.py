"""Commands. All but `serve`, `migrate`, `key` and `version` call the REST API of a running server."""
