/** Downloads and new tabs cannot send the login header, so their URL has a ticket that works once. */

import { call } from "./client";
import { forgetRefusal, showRefusal } from "./refusals";

async function ticketed(path: string): Promise<string> {
  forgetRefusal();
  return (await call("POST /download-tickets", { body: { path } })).path;
}

/** Save what is at an address as a file. */
export async function download(address: string): Promise<void> {
  try {
    const link = document.createElement("a");
    link.href = await ticketed(address);
    link.download = "";
    link.click();
  } catch (error) {
    showRefusal(error);
  }
}

/** Show what is at an address in a new tab. */
export async function openInTab(address: string): Promise<void> {
  // Opened at once: some browsers block a tab that is opened only after an answer has come.
  const tab = window.open("", "_blank");
  if (tab) tab.opener = null;
  try {
    const path = await ticketed(address);
    if (tab) tab.location.replace(path);
  } catch (error) {
    tab?.close();
    showRefusal(error);
  }
}
