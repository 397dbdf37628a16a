/** Servers of local models, which are looked for only when the owner asks. */

import { useMutation } from "@tanstack/react-query";
import { call } from "../../api/client";
import type { FoundShape } from "../../api/rest.generated";
import { ErrorText } from "../ui/ErrorText";
import { listedFacts } from "./ModelIdField";

interface Props {
  isBusy: boolean;
  onUse: (chosen: { provider: string; address: string; model: string }) => void;
}

export function LocalServers({ isBusy, onUse }: Props) {
  const look = useMutation({ mutationFn: () => call("POST /models/discover") });
  const servers = look.data?.servers;
  return (
    <section className="stack local-models" aria-label="Local models">
      <div className="row wrap">
        <button type="button" className="primary" disabled={look.isPending || isBusy} onClick={() => look.mutate()}>
          {look.isPending ? "Looking…" : servers ? "Look again" : "Look for local models"}
        </button>
        <span className="muted small grow">Ollama, LM Studio, vLLM and llama.cpp on the server's machine</span>
      </div>
      <div role="status">
        {servers?.length === 0 && (
          <p>
            None found. Start one of them and look again. If it runs on another machine, choose it below and enter its
            address.
          </p>
        )}
        {servers?.map((server) => (
          <Found key={server.address} server={server} isBusy={isBusy} onUse={onUse} />
        ))}
        <ErrorText error={look.error} />
      </div>
    </section>
  );
}

function Found({ server, isBusy, onUse }: Props & { server: FoundShape }) {
  const { provider, address, models } = server;
  return (
    <>
      <h3>
        {server.label} <span className="muted small">{address}</span>
      </h3>
      {models.length === 0 && <p>It answers, but it has no models yet. Download one there, then look again.</p>}
      <ul className="rows model-choices" aria-label={`Models of ${server.label}`}>
        {models.map((each) => (
          <li key={each.id}>
            <span className="grow">
              <code>{each.id}</code>
              <span className="muted small">{listedFacts(each)}</span>
            </span>
            <button
              type="button"
              disabled={isBusy}
              aria-label={`Use ${each.id}`}
              onClick={() => onUse({ provider, address, model: each.id })}
            >
              Use
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
