import { CodeBlock } from "../components/CodeBlock";

/** For a browser the server does not know. */
export function SignedOut() {
  return (
    <main className="signed-out">
      <img src="/ui/icon.svg" alt="" width={48} height={48} />
      <h1>Wakeful</h1>
      <p>This browser is not logged in. Open the login link that the server printed when it started; it works once, for ten minutes.</p>
      <p>No link at hand? Restart the server, or ask it for a new one with its token:</p>
      <CodeBlock language="shell" code={`curl -X POST ${location.origin}/login-links \\\n  -H "Authorization: Bearer $WAKEFUL_TOKEN" -H "Content-Type: application/json" -d '{}'`} />
    </main>
  );
}
