/** Markdown as React elements. Text never becomes HTML: tags are shown as written, and links are checked. */

import { marked, type Token, type Tokens } from "marked";
import { memo, type ReactNode, useState } from "react";
import { CodeBlock } from "./CodeBlock";
import "./Markdown.css";

export const Markdown = memo(function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const [reader] = useState(() => new GrowingText());
  const blocks = isGrowing ? reader.read(text) : toBlocks(text);
  // A reference definition at the end turns words before it into links, so the blocks are rendered again.
  const hasDefinitions = !isGrowing && blocks.some((token) => token.type === "def");
  return (
    <div key={hasDefinitions ? "linked" : "plain"} className="markdown">
      {blocks.map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  );
});

function toBlocks(text: string): Token[] {
  return marked.lexer(text, { gfm: true, breaks: false });
}

/**
 * Parses text that grows at its end. New text can only change the last block (a list may continue after an empty line),
 * so the blocks before it are not parsed again. A reference link whose definition comes later becomes a link when the
 * whole text is parsed at the end.
 */
class GrowingText {
  private settled: Token[] = [];
  private before = ""; // the source of the settled blocks

  read(written: string): Token[] {
    const text = written.replace(/\r\n|\r/g, "\n"); // as the lexer does, so that the lengths of its blocks add up
    if (!text.startsWith(this.before)) this.forget();
    const open = toBlocks(text.slice(this.before.length));
    const blocks = [...this.settled, ...open];
    const last = open.findLastIndex((token) => token.type !== "space");
    if (last > 0) {
      this.settled = blocks.slice(0, this.settled.length + last);
      this.before += open
        .slice(0, last)
        .map((token) => token.raw)
        .join("");
    }
    return blocks;
  }

  private forget(): void {
    this.settled = [];
    this.before = "";
  }
}

// While text streams in, only its last block changes; the blocks before it are not rendered again.
const Block = memo(
  function Block({ token }: { raw: string; token: Token }) {
    return <>{block(token)}</>;
  },
  (before, after) => before.raw === after.raw && before.token.type === after.token.type,
);

function block(token: Token): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      const { depth, tokens } = token as Tokens.Heading;
      // The page has h1 and h2 of its own, so a text's headings start at h3.
      const Level = `h${Math.min(depth + 2, 6)}` as "h3";
      return <Level>{inline(tokens)}</Level>;
    }
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return <CodeBlock code={text} language={lang?.split(/\s/)[0]} />;
    }
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>;
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const entries = items.map((item, index) => <li key={index}>{listItem(item)}</li>);
      return ordered ? <ol start={start === "" ? 1 : start}>{entries}</ol> : <ul>{entries}</ul>;
    }
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "html":
      return <p className="raw-html">{(token as Tokens.HTML).text}</p>;
    case "paragraph":
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? inline(tokens) : text;
    }
    default:
      return token.raw;
  }
}

function blocks(tokens: Token[]): ReactNode[] {
  return tokens.map((token, index) => <Block key={index} raw={token.raw} token={token} />);
}

function listItem(item: Tokens.ListItem): ReactNode {
  if (!item.task) return blocks(item.tokens);
  const tokens = item.tokens.filter((token) => token.type !== "checkbox");
  return (
    <span className="task">
      <input
        type="checkbox"
        checked={item.checked ?? false}
        readOnly
        disabled
        aria-label={item.checked ? "done" : "to do"}
      />
      <span>{blocks(tokens)}</span>
    </span>
  );
}

function table({ header, rows, align }: Tokens.Table): ReactNode {
  const cell = (each: Tokens.TableCell, index: number, Tag: "th" | "td") => (
    <Tag key={index} className={align[index] ? `align-${align[index]}` : undefined}>
      {inline(each.tokens)}
    </Tag>
  );
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>{header.map((each, index) => cell(each, index, "th"))}</tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <tr key={number}>{row.map((each, index) => cell(each, index, "td"))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[]): ReactNode[] {
  return tokens.map((token, index) => <InlineToken key={index} token={token} />);
}

function InlineToken({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens)}</em>;
    case "del":
      return <del>{inline((token as Tokens.Del).tokens)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link": {
      const { href, tokens } = token as Tokens.Link;
      const safe = safeAddress(href);
      return safe ? (
        <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
          {inline(tokens)}
        </a>
      ) : (
        <span title={href}>{inline(tokens)}</span>
      );
    }
    case "image": {
      // Loading an image would tell its host that this page was read, so it is shown as a link.
      const { href, text } = token as Tokens.Image;
      const safe = safeAddress(href);
      const label = `Picture: ${text || href}`;
      return safe ? (
        <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
          {label}
        </a>
      ) : (
        label
      );
    }
    case "escape":
      return (token as Tokens.Escape).text;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? inline(tokens) : decode(text);
    }
    default:
      return token.raw;
  }
}

/** Return an address if it is safe in a link, or null if it could run code. */
export function safeAddress(href: string): string | null {
  const address = decode(href).trim();
  try {
    const url = new URL(address, location.origin);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };

function decode(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name) return ENTITIES[name.toLowerCase()] ?? whole;
      const code = decimal ? Number(decimal) : Number.parseInt(hex ?? "", 16);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
