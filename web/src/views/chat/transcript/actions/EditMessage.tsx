/** A person's last message, being edited. */

import { useId, useState } from "react";
import { useAct } from "../../../../api/queries";
import type { MessageShape } from "../../../../api/rest.generated";
import { ErrorText } from "../../../../components/ui/ErrorText";
import { Form } from "../../../../components/ui/Form";
import type { Turn } from "../turns";
import { hasTools } from "./EarlierVersion";
import type { Actions } from "./MessageActions";
import "./EditMessage.css";

interface Props {
  message: MessageShape;
  turn: Turn;
  onSend: Actions["retry"] | undefined;
  onClose: () => void;
}

export function EditMessage({ message, turn, onSend, onClose }: Props) {
  const [text, setText] = useState(message.content);
  const hint = useId();
  const send = useAct(async () => onSend?.(message, text.trim()), [["runs"]], onClose);
  return (
    <Form className="edit-message" act={send} onSubmit={() => send.mutate(undefined)}>
      <textarea
        // biome-ignore lint/a11y/noAutofocus: it replaces the text whose Edit button was just pressed
        autoFocus
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        aria-label="Edit message"
        aria-describedby={hint}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      />
      <p id={hint} className="muted small">
        The message is answered again. The earlier version stays readable, and the model no longer reads it.
        {hasTools(turn) && " What its tools did stays done."}
      </p>
      <div className="row">
        <button type="submit" className="primary small" disabled={text.trim() === "" || send.isPending}>
          Send
        </button>
        <button type="button" className="small" onClick={onClose}>
          Cancel
        </button>
      </div>
      <ErrorText error={send.error} />
    </Form>
  );
}
