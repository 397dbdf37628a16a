import { useCallback, useRef } from "react";
import { useSearchParams } from "wouter";

/** The message in the address: a result of the search. It is removed once it was shown, so that it can be chosen again. */
export function useWantedMessage() {
  const [params, setParams] = useSearchParams();
  const latest = useRef(setParams);
  latest.current = setParams;
  const forget = useCallback(() => {
    latest.current(
      (before) => {
        before.delete("message");
        return before;
      },
      { replace: true },
    );
  }, []);
  return { wanted: params.get("message"), forget };
}
