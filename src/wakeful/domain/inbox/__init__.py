"""Rules of notices and of the channels they go out through."""
