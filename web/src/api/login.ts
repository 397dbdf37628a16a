/** Login with a token, which the page gives to the server once and does not keep. */

import { BASE } from "./base";
import { ApiError, readError, unreachable } from "./client";
import { keepSecret } from "./secret";

export async function logIn(token: string): Promise<void> {
  const body = new URLSearchParams({ token });
  const answer = await fetch(`${BASE}/login`, { method: "POST", body, credentials: "same-origin" }).catch(() => {
    throw unreachable("POST");
  });
  if (!answer.ok) {
    const { status, code, message } = await readError(answer);
    throw new ApiError(status, code, message); // the page has the hints already
  }
  keepSecret(((await answer.json()) as { page_secret: string }).page_secret);
}
