"""Commands for users, their tokens and time zones."""
