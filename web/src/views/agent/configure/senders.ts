/** Senders of hooks, and where each wants the address and the secret. */

import type { NewHook } from "../../../api/rest.generated";

export const SENDERS: Record<NewHook["scheme"], { label: string; steps: string }> = {
  github: {
    label: "GitHub",
    steps: "In the repository: Settings → Webhooks → Add webhook. Content type application/json; then the secret.",
  },
  gitlab: {
    label: "GitLab",
    steps: "In the project: Settings → Webhooks → Add new webhook. The secret goes into “Secret token”.",
  },
  stripe: {
    label: "Stripe",
    steps: "Developers → Webhooks → Add destination. Stripe makes the secret: paste it with Rotate secret.",
  },
  standard: {
    label: "Standard Webhooks",
    steps: "Give the sender the address and the secret. If the sender made a secret, paste it with Rotate secret.",
  },
  bearer: { label: "Bearer token", steps: "Send the header “Authorization: Bearer SECRET” with each delivery." },
};
