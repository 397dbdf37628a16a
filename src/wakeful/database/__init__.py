"""An agent's own database: its file, and its doors for people, programs and models."""
