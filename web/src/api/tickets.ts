/** Downloads and new tabs cannot send the login header, so their URL has a ticket that works once. */

import { BASE } from "./base";
import { call } from "./client";
import { clearPageError, showPageError } from "./pageError";

async function ticketed(path: string): Promise<string> {
  clearPageError();
  return BASE + (await call("POST /download-tickets", { body: { path } })).path;
}

/** Download a file from an address. */
export async function download(address: string): Promise<void> {
  try {
    const link = document.createElement("a");
    link.href = await ticketed(address);
    link.download = "";
    link.click();
  } catch (error) {
    showPageError(error);
  }
}

/** Open an address in a new tab. */
export async function openInTab(address: string): Promise<void> {
  // Opened before the request: some browsers block a tab that is opened only after a response.
  const tab = window.open("", "_blank");
  if (tab) tab.opener = null;
  try {
    const path = await ticketed(address);
    if (tab) tab.location.replace(path);
  } catch (error) {
    tab?.close();
    showPageError(error);
  }
}
