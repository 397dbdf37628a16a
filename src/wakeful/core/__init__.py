"""Importable from every package: types, errors, events, time, texts, the hub."""
