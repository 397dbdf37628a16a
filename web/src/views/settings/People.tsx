import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { BASE } from "../../api/base";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import type { UserShape } from "../../api/rest.generated";
import { MAX_LENGTH } from "../../api/server.generated";
import { CopyButton } from "../../components/text/CodeBlock";
import { Time } from "../../components/text/times";
import { Confirm } from "../../components/ui/Dialog";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { SettingsSection } from "../../components/ui/SettingsSection";

export function People({ meId }: { meId: string }) {
  const users = useQuery(queries.users).data ?? [];
  const [name, setName] = useState("");
  const add = queries.useAct(
    () => call("POST /users", { body: { name } }),
    [["users"]],
    () => setName(""),
  );
  const link = queries.useAct((user_id: string) => call("POST /login-links", { body: { user_id } }), []);
  const remove = queries.useAct(
    (user_id: string) => call("DELETE /users/{user_id}", { path: { user_id } }),
    [["users"]],
    () => setLeaving(null),
  );
  const change = queries.useAct(
    ({ user_id, role }: { user_id: string; role: "owner" | "user" }) =>
      call("PATCH /users/{user_id}", { path: { user_id }, body: { role } }),
    [["users"]],
  );
  const [leaving, setLeaving] = useState<UserShape | null>(null);
  const problem = add.error ?? link.error ?? change.error;
  return (
    <SettingsSection title="People" text="Each person has their own agents and sessions; nobody sees another's.">
      <ul className="rows" aria-label="People">
        {users.map((user) => (
          <li key={user.id}>
            <span className="grow">
              <strong>{user.name}</strong>
              <span className="muted small">
                {user.role === "owner" ? "owner" : "member"} · since <Time at={user.created_at} />
              </span>
            </span>
            <button type="button" className="small" onClick={() => link.mutate(user.id)}>
              Login link
            </button>
            {user.id !== meId && (
              <>
                <button
                  type="button"
                  className="small"
                  onClick={() => change.mutate({ user_id: user.id, role: user.role === "owner" ? "user" : "owner" })}
                >
                  {user.role === "owner" ? "Change to member" : "Change to owner"}
                </button>
                <button type="button" className="small" onClick={() => setLeaving(user)}>
                  Remove
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
      {leaving && (
        <Confirm
          title={`Remove ${leaving.name}?`}
          text="Their browsers and programs are logged out at once, login links no longer work for them, their scheduled runs are cancelled, and running ones are stopped."
          action="Remove"
          error={remove.error}
          onConfirm={() => remove.mutate(leaving.id)}
          onClose={() => setLeaving(null)}
        />
      )}
      {link.data && (
        <div className="secret" role="status">
          <p>Logs in one browser, once, within ten minutes:</p>
          <p className="row">
            <code>{addressOf(link.data)}</code> <CopyButton text={addressOf(link.data)} />
          </p>
        </div>
      )}
      <Form className="row wrap" act={add} onSubmit={() => add.mutate(undefined)}>
        <input
          value={name}
          required
          maxLength={MAX_LENGTH.NewUser.name}
          placeholder="Name"
          aria-label="Name of the person"
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit">Add a person</button>
      </Form>
      <ErrorText error={problem} />
    </SettingsSection>
  );
}

/** A login link, at the address that the server's owner has set for people, else at this page's. */
function addressOf({ url, path }: { url: string | null; path: string }): string {
  return url ?? location.origin + BASE + path;
}
