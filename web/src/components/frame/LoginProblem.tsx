import { ApiError, explain } from "../../api/client";
import { LoginHelp } from "./LoginHelp";

/** An error; for a login that is too old, also how to log in again. */
export function LoginProblem({ error }: { error: unknown }) {
  if (!error) return null;
  const isTooOld = error instanceof ApiError && error.code === "login_too_old";
  return (
    <div role="alert">
      <p className="bad-text">{isTooOld ? `${error.message} Log in again, then come back here.` : explain(error)}</p>
      {isTooOld && <LoginHelp />}
    </div>
  );
}
