/** Go to another page as a click on a link does: a form with unsaved changes asks first. */

export function follow(path: string, navigate: (path: string) => void): void {
  const link = document.createElement("a");
  link.href = path;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    navigate(path);
  });
  document.body.append(link);
  link.click();
  link.remove();
  requestAnimationFrame(focusPage);
}

/** Move the focus to the new page, unless it has taken it: a session focuses its message box. */
function focusPage(): void {
  const main = document.getElementById("main");
  if (document.querySelector("dialog[open]") || main?.contains(document.activeElement)) return;
  const box = main?.querySelector<HTMLElement>(".composer textarea");
  (box ?? main)?.focus();
}
