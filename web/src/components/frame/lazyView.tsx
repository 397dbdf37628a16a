/** Views whose script is loaded when they are first shown. */

import { type ComponentType, useEffect, useState } from "react";
import { checkBuild } from "../../api/build";
import { Failure, Loading } from "./Page";

const RETRY_MS = 2_000;

/** Return a component that loads a view, a page or a part of one; a load that fails is tried again. */
export function lazyView<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
  isPart = false,
): ComponentType<P> {
  let View: ComponentType<P> | null = null;
  return function LazyView(props: P) {
    const [, setLoaded] = useState(false);
    const [tries, setTries] = useState(0);
    const [hasFailed, setFailed] = useState(false);
    // biome-ignore lint/correctness/useExhaustiveDependencies: each try loads it again
    useEffect(() => {
      if (View) return;
      let isShown = true;
      load().then(
        (module) => {
          View = module.default;
          if (isShown) setLoaded(true);
        },
        () => isShown && setFailed(true),
      );
      return () => {
        isShown = false;
      };
    }, [tries]);
    if (View) return <View {...props} />;
    if (hasFailed) return <LoadFailure tries={tries} isPart={isPart} onRetry={() => setTries(tries + 1)} />;
    return <Loading what="this page" />;
  };
}

/** Waits until the server answers. Some browsers remember that a script failed; then only a reload helps. */
function LoadFailure({ tries, isPart, onRetry }: { tries: number; isPart: boolean; onRetry: () => void }) {
  const [found, setFound] = useState<"away" | "other" | "broken">("away");
  // biome-ignore lint/correctness/useExhaustiveDependencies: one look after each try, and then every two seconds
  useEffect(() => {
    let isShown = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      const build = await checkBuild();
      if (!isShown) return;
      if (build === "other") return setFound("other");
      if (build === "same" && tries > 1) return setFound("broken");
      if (build === "same") return onRetry();
      setFound("away");
      timer = setTimeout(() => void look(), RETRY_MS);
    };
    void look();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [tries]);
  return (
    <Failure
      title="This page could not be loaded"
      text={TEXTS[found]}
      isPart={isPart}
      retry={found === "away" ? onRetry : undefined}
    >
      {found !== "away" && (
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      )}
    </Failure>
  );
}

const TEXTS = {
  away: "The server is not responding. The page will load when the server is back.",
  other: "Wakeful was updated, so this page has to be reloaded.",
  broken: "Its script could not be loaded, although the server responds. A reload may help.",
};
