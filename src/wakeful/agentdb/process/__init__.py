"""The worker processes that run SQL, and the requests they are sent."""
