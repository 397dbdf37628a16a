"""Default limits of a model's answers: an output limit is always sent, so that no answer is endless."""

MAX_OUTPUT_SHARE = 4  # an answer may take a quarter of the window
DEFAULT_OUTPUT = 8_192  # tokens; every current model accepts it
# Ids of models that begin so accept less, or spend more of it on thinking.
_OUTPUTS = (
    (("gpt-3.5", "gpt-4-", "gpt-4:"), 4_096),
    (("gpt-5", "gpt-6", "o1", "o3", "o4"), 32_768),
)
# The most that models accept which are used through their providers' libraries, thinking included. A lower limit than
# the tokens for thinking would be refused, so these are the whole of it. The first that fits counts.
_LARGEST = (
    (("claude-3-7", "claude-sonnet-4", "claude-haiku-4", "claude-opus-4-5"), 64_000),
    (("claude-3-5",), 8_192),
    (("claude-3",), 4_096),
    (("claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5"), 128_000),
    (("claude",), 32_000),
    (("gemini-1", "gemini-2.0"), 8_192),
    (("gemini",), 65_536),
    (("amazon.nova", "mistral."), 4_096),
    (("cohere.", "command-", "ai21."), 4_000),
    (("amazon.titan",), 3_000),
    (("meta.",), 2_048),
)


def largest_output(model: str, window: int) -> int:
    """Return the output limit of a model of a provider's library; Bedrock's ids have a region and a maker in front."""
    plain = model.rpartition("/")[2]
    found = (limit for starts, limit in _LARGEST if any(f".{start}" in f".{plain}" for start in starts))
    return next(found, None) or output_limit(model, window)


def output_limit(model: str, window: int) -> int:
    """Return the tokens that one answer of a model may have, if nobody has set a limit."""
    plain = model.rpartition("/")[2]
    known = next((limit for starts, limit in _OUTPUTS if plain.startswith(starts)), DEFAULT_OUTPUT)
    return max(256, min(known, window // MAX_OUTPUT_SHARE))
