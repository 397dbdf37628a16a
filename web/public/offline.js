/* Loads the page again when the server answers. */
const EVERY_MS = 3000;
const BASE = new URL(document.currentScript.src).pathname.replace("/ui/offline.js", "");

document.documentElement.dataset.theme = localStorage.getItem("wakeful.theme") ?? "auto";
document.getElementById("retry").addEventListener("click", () => location.reload());

async function look() {
  const answer = await fetch(`${BASE}/healthz`, { cache: "no-store" }).catch(() => null);
  if (answer?.ok) location.reload();
  else setTimeout(look, EVERY_MS);
}

setTimeout(look, EVERY_MS);
addEventListener("online", () => location.reload());
