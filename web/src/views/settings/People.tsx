import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, explain } from "../../api/client";
import * as queries from "../../api/queries";
import { CopyButton } from "../../components/CodeBlock";
import { Time } from "../../components/times";
import { Section } from "./Section";

export function People({ meId }: { meId: string }) {
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
