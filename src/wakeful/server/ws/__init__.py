"""WebSockets: the session socket and the events socket."""
