/** Light or dark: the system's setting, or the choice made in this browser. */

export type Theme = "auto" | "light" | "dark";
const KEY = "wakeful.theme";

export function currentTheme(): Theme {
  const saved = localStorage.getItem(KEY);
  return saved === "light" || saved === "dark" ? saved : "auto";
}

export function applyTheme(theme: Theme = currentTheme()): void {
  if (theme === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  document.documentElement.dataset.theme = theme;
}
