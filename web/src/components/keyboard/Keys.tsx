import "./Keys.css";

/** Keys as they are printed on a keyboard: "g a" is one after the other, "Ctrl+K" both at once. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keys.split(" ").map((step, index) => (
        <kbd key={index}>{step.length === 1 ? step.toUpperCase() : step}</kbd>
      ))}
    </span>
  );
}
