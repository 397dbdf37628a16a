import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  base: "/ui/",
  plugins: [react()],
  // Scripts and styles find each other wherever they are: a proxy may have the server under a path.
  experimental: { renderBuiltUrl: (_name, { hostType }) => (hostType === "html" ? undefined : { relative: true }) },
  build: {
    outDir: "../src/wakeful/http/static",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0, // the page's policy takes nothing inline
    modulePreload: { polyfill: false },
    cssCodeSplit: false, // a style sheet of a view that fails to load would not be tried again
  },
});
