/** JSON as text: checked, and indented without a change of its values. */

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Return what is wrong with a text that should be JSON, or null. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Indent a JSON text. Its tokens stay as they are, so that no number loses digits. */
export function formatJson(text: string): string {
  let depth = 0;
  let written = "";
  const newLine = () => `\n${"  ".repeat(depth)}`;
  const tokens = text.match(TOKENS) ?? [];
  tokens.forEach((token, place) => {
    const isOpening = token === "{" || token === "[";
    const isClosing = token === "}" || token === "]";
    const isEmpty = isClosing && ["{", "["].includes(tokens[place - 1] ?? "");
    if (isClosing) depth -= 1;
    if (isClosing && !isEmpty) written += newLine();
    written += token === ":" ? ": " : token;
    if (isOpening) depth += 1;
    const closesNext = ["}", "]"].includes(tokens[place + 1] ?? "");
    if (token === "," || (isOpening && !closesNext)) written += newLine();
  });
  return written;
}

/** Return a JSON object or array indented, or null if a text is none. */
export function prettyJson(text: string): string | null {
  return /^\s*[[{]/.test(text) && jsonProblem(text) === null ? formatJson(text) : null;
}
