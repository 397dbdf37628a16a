"""Everything that goes to the model: prompt, transcript, compression."""
