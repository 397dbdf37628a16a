"""What every package may import: types, errors, events, time, texts, the hub."""
