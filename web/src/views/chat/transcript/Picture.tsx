import { useEffect, useRef, useState } from "react";
import { loadBlob } from "../../../api/client";
import { openInTab } from "../../../api/tickets";
import "./Picture.css";

const PRELOAD_MARGIN = "400px";

/** An image of a session, loaded when it is scrolled near; a click opens it in a new tab. */
export function Picture({ address, label }: { address: string; label: string }) {
  const place = useRef<HTMLButtonElement>(null);
  const [src, setSrc] = useState<string | null>(null);
  const [isFailed, setFailed] = useState(false);
  useEffect(() => {
    let url: string | null = null;
    let isGone = false;
    const show = (blob: Blob) => {
      if (isGone) return;
      url = URL.createObjectURL(blob);
      setSrc(url);
    };
    const watcher = new IntersectionObserver(
      (seen) => {
        if (!seen.some((each) => each.isIntersecting)) return;
        watcher.disconnect();
        loadBlob(address).then(show, () => setFailed(true));
      },
      { rootMargin: PRELOAD_MARGIN },
    );
    if (place.current) watcher.observe(place.current);
    return () => {
      isGone = true;
      watcher.disconnect();
      if (url) URL.revokeObjectURL(url);
    };
  }, [address]);
  return (
    <button
      ref={place}
      type="button"
      className="picture"
      title="Open in a new tab"
      onClick={() => void openInTab(address)}
    >
      {src ? (
        <img src={src} alt={label} />
      ) : (
        <span className="muted small">{isFailed ? `${label} could not be loaded` : label}</span>
      )}
    </button>
  );
}
