"""What the server stores: its size, what ends it, and how the space is freed."""
