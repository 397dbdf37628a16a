import { type ReactNode, useEffect, useState } from "react";

const SETTLED_MS = 150; // code that is still being written has no colours yet
const MAX_COLOURED = 30_000; // characters; a longer block stays plain

/** Return code with colours, or null until there are any. */
export function useColours(code: string, language: string | undefined): ReactNode | null {
  const [coloured, setColoured] = useState<{ code: string; nodes: ReactNode } | null>(null);
  useEffect(() => {
    if (!language || code.length > MAX_COLOURED) return;
    let isGone = false;
    const timer = setTimeout(async () => {
      try {
        const { highlight } = await import("./highlight");
        if (!isGone) setColoured({ code, nodes: highlight(code, language) });
      } catch {
        // The server is unavailable: the code stays without colours.
      }
    }, SETTLED_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [code, language]);
  return coloured?.code === code ? coloured.nodes : null;
}
