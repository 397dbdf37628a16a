"""Reading what people type: ids, durations, confirmations."""
