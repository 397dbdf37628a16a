"""Rules of accounts and tokens."""
