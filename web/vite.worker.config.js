import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const OUT = "../src/wakeful/http/static";
// The page names its scripts by their content, so with any change of it the worker is another one too.
const build = createHash("sha256").update(readFileSync(`${import.meta.dirname}/${OUT}/index.html`));

export default defineConfig({
  publicDir: false,
  define: { BUILD: JSON.stringify(build.digest("hex").slice(0, 16)) },
  build: {
    outDir: OUT,
    emptyOutDir: false,
    target: "es2023",
    // One classic script with a fixed name: a browser asks for it again to see whether there is a new one.
    lib: { entry: "src/worker/sw.ts", formats: ["iife"], name: "worker", fileName: () => "sw.js" },
  },
});
