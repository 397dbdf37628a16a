import { useState } from "react";
import { Icon } from "../ui/Icon";
import { useColours } from "./code/useColours";
import "./CodeBlock.css";

/** Code with a button that copies it. */
export function CodeBlock({ code, language }: { code: string; language?: string | undefined }) {
  const coloured = useColours(code, language);
  return (
    <figure className="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{coloured ?? code}</code>
      </pre>
    </figure>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"" | "done" | "failed">("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("done");
    } catch {
      setState("failed"); // no permission, or no secure origin
    }
    setTimeout(() => setState(""), 1600);
  };
  return (
    <button type="button" className="quiet small" onClick={() => void copy()} aria-live="polite">
      <Icon name={state === "done" ? "check" : "copy"} size={14} />
      {state === "done" ? "Copied" : state === "failed" ? "Copy failed" : label}
    </button>
  );
}
