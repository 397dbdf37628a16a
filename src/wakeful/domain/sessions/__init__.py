"""Search in sessions: folding of texts, queries, snippets."""
