import { useEffect } from "react";
import type { ApiError } from "../api/client";
import { onLogin } from "../api/secret";
import { LoginHelp } from "../components/LoginHelp";
import "./SignedOut.css";

const WHY: Record<string, string> = {
  login_outdated:
    "Wakeful was upgraded, and a login now has two parts: a cookie and a secret that this page keeps. Log in once more with a new link.",
  login_ended:
    "This browser's login has expired or was revoked, or another server on this host has replaced its cookie. Log in with a new link.",
  page_secret_missing:
    "This browser still has the login cookie, but not the secret that this page keeps beside it: its storage was cleared, or the login was for another address. Log in with a new link.",
};

/** The page of a browser that is not logged in. */
export function SignedOut({ reason }: { reason: ApiError | null }) {
  useEffect(() => onLogin(() => location.reload()), []);
  return (
    <main className="signed-out">
      <img src="/ui/icon.svg" alt="" width={48} height={48} />
      <h1>Wakeful</h1>
      <p>{WHY[reason?.code ?? ""] ?? "This browser is not logged in. Open a login link."}</p>
      <LoginHelp />
    </main>
  );
}
