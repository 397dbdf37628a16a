import { explain } from "../../api/client";

/** The error of a request, if there is one. */
export function ErrorText({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p className="bad-text" role="alert">
      {explain(error)}
    </p>
  );
}
