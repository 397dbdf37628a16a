/** A call that needs approval, with every argument unfolded; of a long one, the middle is one click away. */

import { useCallback, useState } from "react";
import type { ShownArgument } from "../../api/frames.generated";
import "./WholeCall.css";

interface Props {
  tool: string;
  sentence: string; // what the call would do, as the server says it
  shown: ShownArgument[];
  onSeen: () => void; // its beginning has been on the screen, and buttons are below its end
}

export function WholeCall({ tool, sentence, shown, onSeen }: Props) {
  const watch = useCallback(
    (start: HTMLElement | null) => {
      if (!start) return;
      const observer = new IntersectionObserver((found) => found.some((each) => each.isIntersecting) && onSeen());
      observer.observe(start);
      return () => observer.disconnect();
    },
    [onSeen],
  );
  return (
    <>
      <p ref={watch} className="approval-sentence">
        {sentence || `The agent wants to call ${tool}`}
      </p>
      <Arguments shown={shown} />
    </>
  );
}

function Arguments({ shown }: { shown: ShownArgument[] }) {
  return (
    <dl className="call-arguments" aria-label="Arguments">
      {shown.map((each, index) => (
        <Argument key={index /* names that were shortened can be the same */} argument={each} />
      ))}
    </dl>
  );
}

function Argument({ argument: { name, start, middle, end } }: { argument: ShownArgument }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div>
      <dt>{name || '""'}</dt>
      <dd>
        {/* Left to right, so that a right-to-left letter does not reorder a command. */}
        <pre dir="ltr" className={isOpen ? "is-open" : ""} tabIndex={isOpen ? 0 : undefined}>
          {start}
          {isOpen && middle}
          {middle && !isOpen && (
            <button type="button" className="small" onClick={() => setOpen(true)}>
              Show {[...middle].length.toLocaleString("en")} characters between
            </button>
          )}
          {end}
        </pre>
      </dd>
    </div>
  );
}
