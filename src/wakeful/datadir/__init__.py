"""The data directory: data of earlier servers, the device key, unfinished restores, the move to PostgreSQL."""
