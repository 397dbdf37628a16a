"""The settings: the file, the environment, and what each of them may be."""
