/** Code with colours, as React elements: loaded when the first block of code is shown. */

import type { ReactNode } from "react";
import { Prism } from "./prismCore";
import "prismjs/components/prism-clike";
import "prismjs/components/prism-markup";
import "prismjs/components/prism-css";
import "prismjs/components/prism-javascript";
import "prismjs/components/prism-typescript";
import "prismjs/components/prism-jsx";
import "prismjs/components/prism-tsx";
import "prismjs/components/prism-json";
import "prismjs/components/prism-python";
import "prismjs/components/prism-bash";
import "prismjs/components/prism-sql";
import "prismjs/components/prism-yaml";
import "prismjs/components/prism-toml";
import "prismjs/components/prism-diff";
import "prismjs/components/prism-c";
import "prismjs/components/prism-cpp";
import "prismjs/components/prism-go";
import "prismjs/components/prism-rust";
import "prismjs/components/prism-java";
import type { Tokens } from "prismjs/components/prism-core";

const ALIASES: Record<string, string> = {
  py: "python",
  js: "javascript",
  mjs: "javascript",
  ts: "typescript",
  sh: "bash",
  shell: "bash",
  console: "bash",
  zsh: "bash",
  yml: "yaml",
  h: "c",
  "c++": "cpp",
  rs: "rust",
  golang: "go",
  jsonc: "json",
  patch: "diff",
};

/** Return code as coloured elements, or null for a language without a grammar. */
export function highlight(code: string, language: string): ReactNode | null {
  const wanted = language.toLowerCase();
  const name = ALIASES[wanted] ?? wanted;
  const grammar = Object.hasOwn(Prism.languages, name) ? Prism.languages[name] : null;
  return typeof grammar === "object" && grammar !== null ? toElements(Prism.tokenize(code, grammar)) : null;
}

function toElements(tokens: Tokens): ReactNode {
  if (typeof tokens === "string") return tokens;
  if (Array.isArray(tokens)) return tokens.map((each, index) => <Piece key={index} piece={each} />);
  return <span className={`token-${tokens.type}`}>{toElements(tokens.content)}</span>;
}

function Piece({ piece }: { piece: Exclude<Tokens, unknown[]> }) {
  return toElements(piece);
}
