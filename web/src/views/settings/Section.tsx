import type { ReactNode } from "react";

export function Section({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  return (
    <section className="settings-section" aria-label={title}>
      <div className="section-words">
        <h2>{title}</h2>
        <p className="muted">{text}</p>
      </div>
      <div className="section-fields">{children}</div>
    </section>
  );
}
