import { CodeBlock } from "./CodeBlock";

/** Instructions for getting a login link. */
export function LoginHelp() {
  const ask = `curl -X POST ${location.origin}/login-links \\\n  -H "Authorization: Bearer $WAKEFUL_TOKEN" \\\n  -H "Content-Type: application/json" -d '{}'`;
  return (
    <>
      <p>
        The server prints a login link each time it starts; it works once, for ten minutes. No link at hand? Restart the
        server, or ask it for a new one with the owner's token:
      </p>
      <CodeBlock language="shell" code={ask} />
      <p className="muted small">
        Open {location.origin} followed by the <code>path</code> of the answer. If you set no token, it is in the file{" "}
        <code>token</code> in the config directory (<code>~/.config/wakeful</code> on Linux).
      </p>
    </>
  );
}
