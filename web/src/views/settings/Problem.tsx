import { explain, Refused } from "../../api/client";
import { LoginHelp } from "../../components/LoginHelp";

/** Says what was refused; a login that is too old for it, with the way to a new one. */
export function Problem({ error }: { error: unknown }) {
  if (!error) return null;
  const isTooOld = error instanceof Refused && error.code === "login_too_old";
  return (
    <div role="alert">
      <p className="bad-text">{isTooOld ? `${error.message} Log in again, then come back here.` : explain(error)}</p>
      {isTooOld && <LoginHelp />}
    </div>
  );
}
