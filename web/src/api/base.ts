/** The path under which a proxy has the server (its setting `base_path`), such as "/wakeful"; "" without one. */

// Where this script was loaded from says it: all of them are in BASE/ui/assets/.
export const BASE = /^(.*)\/ui\/assets\//.exec(new URL(import.meta.url).pathname)?.[1] ?? "";

/** Put the base path into the address bar if it is missing, as when the server is opened around its proxy. */
export function enterBase(): void {
  const { pathname, search, hash } = location;
  if (pathname !== BASE && !pathname.startsWith(`${BASE}/`))
    history.replaceState(null, "", BASE + pathname + search + hash);
}
