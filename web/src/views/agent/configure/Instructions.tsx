/** AGENTS.md and skills. A file that a program changed is not used in prompts until someone accepts it. */

import { useQuery } from "@tanstack/react-query";
import { call } from "../../../api/client";
import * as queries from "../../../api/queries";
import type { AgentShape, InstructionFileShape } from "../../../api/rest.generated";
import { CodeBlock } from "../../../components/text/CodeBlock";
import { ErrorText } from "../../../components/ui/ErrorText";
import { SettingsSection } from "../../../components/ui/SettingsSection";
import { Field } from "./fields";

const AGENTS_FILE = "AGENTS.md";

export function Instructions({ agent }: { agent: AgentShape }) {
  const files = useQuery(queries.instructions(agent.id));
  const agentsFile = files.data?.find((each) => each.path === AGENTS_FILE);
  const save = queries.useAct(
    (text: string) =>
      call("PUT /agents/{agent_id}/instructions/{path}", {
        path: { agent_id: agent.id, path: AGENTS_FILE },
        body: { text },
      }),
    [["instructions", agent.id]],
  );
  return (
    <SettingsSection
      id="instructions"
      title="Instructions"
      text="AGENTS.md goes into every prompt; skills are listed there by name. Only what you saved or accepted is used."
    >
      <ErrorText error={files.error} />
      {agentsFile?.accepted !== false && (
        <Field
          label={AGENTS_FILE}
          rows={4}
          value={agentsFile?.text ?? ""}
          placeholder="How it should work, in Markdown"
          onSave={(text) => save.mutateAsync(text)}
        />
      )}
      <p className="muted small" role="status">
        {save.isPending ? "Saving…" : save.isSuccess ? "Saved." : ""}
      </p>
      {files.data?.map((file) =>
        file.accepted ? (
          file.path !== AGENTS_FILE && <AcceptedFile key={file.path} file={file} />
        ) : (
          <ChangedFile key={file.path} agent={agent} file={file} />
        ),
      )}
    </SettingsSection>
  );
}

function AcceptedFile({ file }: { file: InstructionFileShape }) {
  return (
    <details>
      <summary>{file.path}</summary>
      <CodeBlock code={file.text} language="markdown" />
    </details>
  );
}

function ChangedFile({ agent, file }: { agent: AgentShape; file: InstructionFileShape }) {
  const accept = queries.useAct(
    () =>
      call("POST /agents/{agent_id}/instructions/{path}/accept", {
        path: { agent_id: agent.id, path: file.path },
        body: { digest: file.digest },
      }),
    [["instructions", agent.id], ["notifications"]],
  );
  return (
    <div className="stack" role="group" aria-label={`${file.path} changed`}>
      <p>
        <span className="badge bad">not used</span> <strong>{file.path}</strong> was changed outside of this page,
        perhaps by a program the agent ran. Runs do not see it until you accept it. Read it first:
      </p>
      <CodeBlock code={file.text} language="markdown" />
      <div className="row">
        <button type="button" className="primary" disabled={accept.isPending} onClick={() => accept.mutate(undefined)}>
          Accept
        </button>
      </div>
      <ErrorText error={accept.error} />
    </div>
  );
}
