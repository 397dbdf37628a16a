import { type ReactNode, useEffect, useId, useRef } from "react";
import { ErrorText } from "./ErrorText";
import { Icon } from "./Icon";
import "./Dialog.css";

interface Props {
  title: string;
  isSheet?: boolean; // at the lower edge, for phones
  onClose: () => void;
  children: ReactNode;
}

/** A modal dialog: the browser's own, which traps the focus and closes with Escape. */
export function Dialog({ title, isSheet = false, onClose, children }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    // Focus the first field rather than the button that closes the dialog.
    dialog?.querySelector<HTMLElement>(".dialog-body > :not(header) :is(input, textarea, select, button)")?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={isSheet ? "sheet" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== ref.current) return; // React lets the event of a dialog inside this one bubble
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === ref.current && onClose()}
    >
      <div className="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" className="quiet icon-only" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  action: string;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

export function Confirm({ title, text, action, error, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <ErrorText error={error} />
      <div className="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="danger" onClick={onConfirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
