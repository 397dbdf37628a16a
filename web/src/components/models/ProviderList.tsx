/** The providers that models can be added from, as the server lists them. */

import { useQuery } from "@tanstack/react-query";
import * as queries from "../../api/queries";
import type { ProviderShape } from "../../api/rest.generated";
import { ErrorText } from "../ui/ErrorText";

export function ProviderList({ onChoose }: { onChoose: (provider: ProviderShape) => void }) {
  const providers = useQuery(queries.providers);
  return (
    <section className="stack" aria-label="Providers">
      <h3>Or choose a provider</h3>
      <ErrorText error={providers.error} />
      <ul className="providers">
        {providers.data?.map((provider) => (
          <li key={provider.id}>
            <button type="button" disabled={!provider.is_available} onClick={() => onChoose(provider)}>
              <span>{provider.label}</span>
              <span className="muted small">{needs(provider)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Return what a model from a provider needs, in words. */
function needs({ needs_key, address, is_local, extra, is_available }: ProviderShape): string {
  if (!is_available) return `wakeful[${extra}] is not installed`;
  const parts = [needs_key && "a key", address === null && "its address"].filter(Boolean);
  return parts.length > 0 ? `needs ${parts.join(" and ")}` : is_local ? "your own machine, no key" : "no key";
}
