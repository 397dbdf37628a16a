"""Default limits of a model's answers: an output limit is always sent, so that no answer is endless."""

MAX_OUTPUT_SHARE = 4  # an answer may take a quarter of the window
DEFAULT_OUTPUT = 8_192  # tokens; every current model accepts it
# Ids of models that begin so accept less, or spend more of it on thinking.
_OUTPUTS = (
    (("gpt-3.5", "gpt-4-", "gpt-4:"), 4_096),
    (("gpt-5", "gpt-6", "o1", "o3", "o4"), 32_768),
)


def output_limit(model: str, window: int) -> int:
    """Return the tokens that one answer of a model may have, if nobody has set a limit."""
    plain = model.rpartition("/")[2]
    known = next((limit for starts, limit in _OUTPUTS if plain.startswith(starts)), DEFAULT_OUTPUT)
    return max(256, min(known, window // MAX_OUTPUT_SHARE))
