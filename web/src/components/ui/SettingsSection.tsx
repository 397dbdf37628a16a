import { type ReactNode, useId } from "react";
import "./SettingsSection.css";

interface Props {
  id?: string; // for links to this section
  title: string;
  text?: string;
  children: ReactNode;
}

/** A section of settings: title and description at the left, fields at the right. */
export function SettingsSection({ id, title, text, children }: Props) {
  const titleId = useId();
  return (
    <section className="settings-section" id={id} aria-labelledby={titleId}>
      <div className="section-intro">
        <h2 id={titleId}>{title}</h2>
        {text && <p className="muted">{text}</p>}
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}
