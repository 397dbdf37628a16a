"""Commands for the inbox and the channels of notifications."""
