import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { Markdown, safeAddress } from "./Markdown";

beforeAll(() => vi.stubGlobal("location", { origin: "https://page.test" }));

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));

describe("safeAddress", () => {
  it.each(["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#115;cript:alert(1)", "data:text/html,x", "vbscript:x"])(
    "refuses %s",
    (address) => expect(safeAddress(address)).toBeNull(),
  );
  it.each(["https://example.org/", "mailto:a@example.org"])("takes %s", (address) =>
    expect(safeAddress(address)).toBe(address),
  );
});

describe("Markdown", () => {
  it("shows HTML as text", () => {
    const shown = html("<img src=x onerror=alert(1)> and <b>bold</b>");
    expect(shown).not.toMatch(/<(img|b)\b/);
    expect(shown).toContain("&lt;b&gt;");
  });
  it("makes no link of an address that could run code", () => {
    expect(html("[click](javascript:alert(1))")).not.toContain("href");
  });
  it("opens links in a tab that cannot reach this one", () => {
    expect(html("[a](https://example.org)")).toContain('rel="noopener noreferrer nofollow"');
  });
  it("loads no picture from elsewhere", () => {
    expect(html("![a cat](https://example.org/cat.png)")).toContain("Picture: a cat");
    expect(html("![a cat](https://example.org/cat.png)")).not.toContain("<img");
  });
});
