import { type FormEvent, useEffect, useState } from "react";
import { BASE } from "../../api/base";
import type { ApiError } from "../../api/client";
import { logIn } from "../../api/login";
import { onLogin } from "../../api/secret";
import { LoginHelp } from "../../components/frame/LoginHelp";
import { ErrorText } from "../../components/ui/ErrorText";
import "./SignedOut.css";

const WHY: Record<string, string> = {
  login_outdated:
    "Wakeful was upgraded, and a login now has two parts: a cookie and a secret that this page keeps. Log in once more.",
  login_ended:
    "This browser's login has expired or was revoked, or another server on this host has replaced its cookie. Log in again.",
  page_secret_missing:
    "This browser still has the login cookie, but not the secret that this page keeps beside it: its storage was cleared, or the login was for another address. Log in again.",
};

/** The page of a browser that is not logged in. */
export function SignedOut({ reason }: { reason: ApiError | null }) {
  useEffect(() => onLogin(() => location.reload()), []);
  useEffect(() => {
    document.title = "Log in · Wakeful";
  }, []);
  return (
    <main className="signed-out">
      <img src={`${BASE}/ui/icon.svg`} alt="" width={48} height={48} />
      <h1>Log in to Wakeful</h1>
      <p>{WHY[reason?.code ?? ""] ?? "This browser is not logged in."}</p>
      <TokenForm />
      <h2>Or with a link</h2>
      <LoginHelp />
    </main>
  );
}

function TokenForm() {
  const [token, setToken] = useState("");
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = (event: FormEvent) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    logIn(token.trim())
      .then(() => location.reload())
      .catch((problem: unknown) => {
        setError(problem);
        setSending(false);
      });
  };
  return (
    <form className="token-form" onSubmit={send}>
      <label htmlFor="token">Token</label>
      <input
        id="token"
        type="password"
        autoComplete="current-password"
        required
        maxLength={1000}
        aria-describedby="token-help"
        value={token}
        onChange={(event) => setToken(event.target.value)}
      />
      <p id="token-help" className="muted small">
        The owner's token is the value of <code>WAKEFUL_TOKEN</code>. Without that setting it is in the file{" "}
        <code>token</code> in the config directory (<code>~/.config/wakeful</code> on Linux).
      </p>
      <ErrorText error={error} />
      <button type="submit" className="primary" disabled={isSending}>
        Log in
      </button>
    </form>
  );
}
