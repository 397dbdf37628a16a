import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { call, explain } from "../api/client";
import * as queries from "../api/queries";
import type { NewToken } from "../api/rest.generated";
import { CodeBlock, CopyButton } from "../components/CodeBlock";
import { PageHeader } from "../components/Page";
import { applyTheme, currentTheme, type Theme } from "../components/theme";
import { Time } from "../components/times";
import { BrowserNotifications } from "./InboxView";

export default function SettingsView() {
  const me = useQuery(queries.me).data;
  const isAdmin = me?.scope === "admin";
  return (
    <div className="page">
      <PageHeader title="Settings" />
      <div className="page-body">
        <Running />
        <Model />
        <ThisBrowser />
        {isAdmin && <Tokens />}
        {isAdmin && me.user.role === "owner" && <People meId={me.user.id} />}
      </div>
    </div>
  );
}

function Section({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  return (
    <section className="settings-section">
      <div className="section-words">
        <h2>{title}</h2>
        <p className="muted">{text}</p>
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}

function Running() {
  const about = useQuery(queries.about).data;
  const ready = useQuery(queries.readiness);
  const me = useQuery(queries.me).data;
  return (
    <Section title="What is running" text="This server, and who you are to it.">
      <dl className="facts">
        <div>
          <dt>Version</dt>
          <dd>Wakeful {about?.version}</dd>
        </div>
        <div>
          <dt>Store</dt>
          <dd>{about?.store === "postgresql" ? "PostgreSQL" : "SQLite, in the server's data directory"}</dd>
        </div>
        <div>
          <dt>Wakes</dt>
          <dd>{ready.isError ? <span className="bad-text">are not being fired: {explain(ready.error)}</span> : ready.isSuccess ? "are being fired" : "…"}</dd>
        </div>
        <div>
          <dt>You</dt>
          <dd>
            {me?.user.name} ({me?.user.role})
          </dd>
        </div>
      </dl>
      <p className="row">
        <a className="button" href="/openapi.json" target="_blank" rel="noopener">
          The API, described
        </a>
      </p>
    </Section>
  );
}

function Model() {
  const about = useQuery(queries.about).data;
  if (!about) return null;
  return (
    <Section title="Model" text="What answers, unless an agent has a model of its own.">
      <p>
        <code>{about.model}</code>
      </p>
      {about.is_demo && (
        <>
          <p>
            This is the built-in demo model. It is no LLM: it works offline, knows a few sentences, and calls the real tools for them. For a real one, stop the server, set a model, and start it again:
          </p>
          <CodeBlock language="shell" code={"export WAKEFUL_MODEL=anthropic:NAME WAKEFUL_MODEL_API_KEY=…\n# or any OpenAI-compatible endpoint:\nexport WAKEFUL_MODEL=openai-chat:NAME WAKEFUL_MODEL_BASE_URL=http://localhost:11434/v1\nmake serve"} />
        </>
      )}
    </Section>
  );
}

function ThisBrowser() {
  const [theme, setTheme] = useState<Theme>(currentTheme);
  const logOut = queries.useAct(
    () => call("POST /logout"),
    [],
    () => location.assign("/"),
  );
  return (
    <Section title="This browser" text="Kept here, not on the server.">
      <div className="segments" role="group" aria-label="Colours">
        {(["auto", "light", "dark"] as const).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={theme === each}
            onClick={() => {
              applyTheme(each);
              setTheme(each);
            }}
          >
            {each === "auto" ? "As the system" : each === "light" ? "Light" : "Dark"}
          </button>
        ))}
      </div>
      <p className="row">
        <BrowserNotifications />
        <button type="button" onClick={() => logOut.mutate(undefined)}>
          Log out
        </button>
      </p>
    </Section>
  );
}

const SCOPES: [NewToken["scope"], string][] = [
  ["read", "read: look"],
  ["chat", "chat: and talk"],
  ["schedule", "schedule: and book"],
  ["admin", "admin: everything"],
];

function Tokens() {
  const tokens = useQuery(queries.tokens).data ?? [];
  const me = useQuery(queries.me).data;
  const [name, setName] = useState("");
  const [scope, setScope] = useState<NewToken["scope"]>("chat");
  const make = queries.useAct(() => call("POST /tokens", { body: { name, scope } }), [["tokens"]], () => setName(""));
  const revoke = queries.useAct((id: string) => call("DELETE /tokens/{token_id}", { path: { token_id: id } }), [["tokens"]]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate(undefined);
  };
  const problem = make.error ?? revoke.error;
  return (
    <Section title="Tokens" text="For programs, and the browsers that are logged in. Revoking one closes its connections.">
      <ul className="rows" aria-label="Tokens">
        {tokens.map((token) => (
          <li key={token.id}>
            <span className="grow">
              <strong>{token.name}</strong>
              <span className="muted small">
                {token.kind === "browser" ? "browser" : "program"} · {token.scope} · since <Time at={token.created_at} />
                {token.id === me?.token_id && " · this one"}
              </span>
            </span>
            {token.id !== me?.token_id && (
              <button type="button" className="small" onClick={() => revoke.mutate(token.id)}>
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      {make.data && (
        <div className="secret" role="status">
          <p>
            The secret of <strong>{make.data.token.name}</strong>, shown this once:
          </p>
          <p className="row">
            <code>{make.data.secret}</code> <CopyButton text={make.data.secret} />
          </p>
        </div>
      )}
      <form className="row wrap" onSubmit={submit}>
        <input value={name} required maxLength={200} placeholder="Name of the program" aria-label="Name of the program" onChange={(event) => setName(event.target.value)} />
        <select value={scope} aria-label="Scope" onChange={(event) => setScope(event.target.value as NewToken["scope"])}>
          {SCOPES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button type="submit">Make a token</button>
      </form>
      {problem && (
        <p className="bad-text" role="alert">
          {explain(problem)}
        </p>
      )}
    </Section>
  );
}

function People({ meId }: { meId: string }) {
  const users = useQuery(queries.users).data ?? [];
  const [name, setName] = useState("");
  const add = queries.useAct(() => call("POST /users", { body: { name } }), [["users"]], () => setName(""));
  const link = queries.useAct((user_id: string) => call("POST /login-links", { body: { user_id } }), []);
  const remove = queries.useAct((user_id: string) => call("DELETE /users/{user_id}", { path: { user_id } }), [["users"]]);
  const problem = add.error ?? link.error ?? remove.error;
  return (
    <Section title="People" text="Everyone has agents and sessions of their own; nobody sees another's.">
      <ul className="rows" aria-label="People">
        {users.map((user) => (
          <li key={user.id}>
            <span className="grow">
              <strong>{user.name}</strong>
              <span className="muted small">
                {user.role} · since <Time at={user.created_at} />
              </span>
            </span>
            <button type="button" className="small" onClick={() => link.mutate(user.id)}>
              Login link
            </button>
            {user.id !== meId && (
              <button type="button" className="small" onClick={() => remove.mutate(user.id)}>
                Remove
              </button>
            )}
          </li>
        ))}
      </ul>
      {link.data && (
        <div className="secret" role="status">
          <p>It logs one browser in, once, within ten minutes:</p>
          <p className="row">
            <code>{location.origin + link.data.path}</code> <CopyButton text={location.origin + link.data.path} />
          </p>
        </div>
      )}
      <form
        className="row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate(undefined);
        }}
      >
        <input value={name} required maxLength={200} placeholder="Name" aria-label="Name of the person" onChange={(event) => setName(event.target.value)} />
        <button type="submit">Add a person</button>
      </form>
      {problem && (
        <p className="bad-text" role="alert">
          {explain(problem)}
        </p>
      )}
    </Section>
  );
}
