import { type ReactNode, useId } from "react";
import "./SettingsSection.css";

interface Props {
  id?: string; // of its place in the address
  title: string;
  text?: string;
  children: ReactNode;
}

/** A part of the settings: what it is about at the left, its fields at the right. */
export function SettingsSection({ id, title, text, children }: Props) {
  const titleId = useId();
  return (
    <section className="settings-section" id={id} aria-labelledby={titleId}>
      <div className="section-words">
        <h2 id={titleId}>{title}</h2>
        {text && <p className="muted">{text}</p>}
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}
