"""Size of the stored data, deletion of old data, and freeing its space."""
