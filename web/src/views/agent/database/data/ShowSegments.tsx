import { type Address, SHOWS } from "./address";

/** Active, deleted or all rows. */
export function ShowSegments({ address: { show, setShow } }: { address: Address }) {
  return (
    <div className="segments" role="group" aria-label="Which rows">
      {SHOWS.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={show === each} onClick={() => setShow(each)}>
          {text}
        </button>
      ))}
    </div>
  );
}
