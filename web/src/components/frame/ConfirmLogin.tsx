/** Asks for a login link or a token where a request needs a newer login; the form below it stays as it is. */

import { useEffect, useId, useState } from "react";
import { call } from "../../api/client";
import { proofIn, useQuestion } from "../../api/proof";
import * as queries from "../../api/queries";
import { onLogin } from "../../api/secret";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { Form } from "../ui/Form";

export function ConfirmLogin() {
  const answer = useQuestion();
  return answer && <Question answer={answer} />;
}

function Question({ answer }: { answer: (isProven: boolean) => void }) {
  const id = useId();
  const [text, setText] = useState("");
  const renew = queries.useAct(
    () => call("POST /login/renew", { body: { proof: proofIn(text) } }),
    [["tokens"]],
    () => answer(true),
  );
  useEffect(() => onLogin(() => void isSameUser().then(answer)), [answer]); // the link was opened in another tab
  return (
    <Dialog title="Confirm that it is you" onClose={() => answer(false)}>
      <p>
        This browser logged in more than ten minutes ago, and this needs a newer login. What you have entered stays.
      </p>
      <Form act={renew} onSubmit={() => renew.mutate(undefined)}>
        <div className="field">
          <label htmlFor={id}>Login link or token</label>
          <input
            id={id}
            type="password"
            autoComplete="current-password"
            required
            value={text}
            aria-describedby={`${id}-help`}
            onChange={(event) => setText(event.target.value)}
          />
          <p id={`${id}-help`} className="muted small">
            Run <code>wakeful login</code> on the machine that runs the server, and paste the link that it prints, or
            open it in another tab. An owner can make a link for you under Settings, People. The owner's token is the
            value of <code>WAKEFUL_TOKEN</code>, or in the file <code>token</code> in the config directory.
          </p>
        </div>
        {/* The server's hint is in the help above. */}
        <ErrorText error={renew.error && new Error(renew.error.message)} />
        <div className="row end">
          <button type="button" onClick={() => answer(false)}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={renew.isPending}>
            Confirm
          </button>
        </div>
      </Form>
    </Dialog>
  );
}

/** Return whether a login in another tab was this page's user; a page of somebody else is loaded again. */
async function isSameUser(): Promise<boolean> {
  const before = queries.queryClient.getQueryData(queries.me.queryKey)?.user.id;
  const isSame = (await call("GET /me")).user.id === before;
  if (!isSame) location.reload();
  return isSame;
}
