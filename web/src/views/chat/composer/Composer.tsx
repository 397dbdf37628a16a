/** The message box: text, pictures and files, by keyboard, button, paste and drop. */

import {
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
} from "react";
import { areShortcutsOn } from "../../../components/keyboard/setting";
import { Icon } from "../../../components/ui/Icon";
import type { OutgoingMessage } from "../sending";
import { AttachButton, Attachments } from "./Attachments";
import { useAttachments } from "./useAttachments";
import { useDraft } from "./useDraft";
import { useFileDrop } from "./useFileDrop";
import { useQueuedSend } from "./useQueuedSend";
import "./Composer.css";

export interface ComposerHandle {
  quote: (text: string) => void; // adds a quotation to the draft
}

interface Props {
  ref?: Ref<ComposerHandle>;
  draftKey: string;
  getSessionId: () => Promise<string>; // may create the session
  isBusy: boolean;
  isWoken: boolean; // it is busy with a scheduled run
  endedCount: number; // how many runs have ended while the page was open
  onSend: (message: OutgoingMessage, sessionId: string) => Promise<void>;
  onStop: (() => void) | null;
  placeholder: string;
  children?: ReactNode;
}

export function Composer({ draftKey, getSessionId, isBusy, isWoken, endedCount, onSend, onStop, ...rest }: Props) {
  const [text, setText] = useDraft(draftKey);
  const area = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(rest.ref, () => ({
    quote: (quoted) => {
      setText(withQuotation(text, quoted));
      area.current?.focus();
    },
  }));
  const attached = useAttachments(getSessionId);
  const sending = useQueuedSend({
    isReady: text.trim() !== "" && !attached.isUploading,
    isBusy,
    endedCount,
    send: async () => {
      const { pictures, files } = attached;
      const outgoing = { content: text.trim(), images: pictures.map((picture) => picture.src), files };
      setText("");
      attached.set([], []);
      try {
        await onSend(outgoing, await getSessionId());
      } catch (error) {
        setText(text);
        attached.set(pictures, files);
        throw error;
      }
    },
  });
  const isDragging = useFileDrop(attached.add);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      void sending.send();
    }
    if (event.key === "Escape" && !event.nativeEvent.isComposing) {
      if (sending.isQueued) sending.unqueue();
      else if (areShortcutsOn()) onStop?.();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    void attached.add(pasted);
  };
  const problem = attached.problem ?? sending.problem;
  const label = isBusy ? "Send when it's done" : "Send";
  return (
    <div className="composer">
      {isDragging && <div className="drop-here">Drop pictures and files here</div>}
      {problem && (
        <p className="composer-problem" role="alert">
          <Icon name="alert" size={15} />
          <span>{problem}</span>
        </p>
      )}
      {sending.isQueued && <QueuedNotice isWoken={isWoken} onUnqueue={sending.unqueue} />}
      <div className="composer-box">
        <Attachments attached={attached} />
        <MessageArea
          area={area}
          text={text}
          placeholder={rest.placeholder}
          onChange={setText}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div className="composer-row">
          <AttachButton onFiles={attached.add} />
          {rest.children}
          <span className="grow" />
          {onStop && (
            <button type="button" className="icon-only stop" aria-label="Stop" title="Stop (Esc)" onClick={onStop}>
              <Icon name="stop" />
            </button>
          )}
          <button
            type="button"
            className="primary icon-only"
            aria-label={label}
            title={label}
            disabled={!sending.canSend}
            onClick={() => void sending.send()}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
    </div>
  );
}

function QueuedNotice({ isWoken, onUnqueue }: { isWoken: boolean; onUnqueue: () => void }) {
  return (
    <p className="composer-queued" role="status">
      <Icon name="clock" size={15} />
      {isWoken ? "A scheduled run is in progress." : "Still answering."} Your message will be sent when it's done.
      <button type="button" className="quiet small" onClick={onUnqueue}>
        Keep as draft
      </button>
    </p>
  );
}

const MAX_HEIGHT = 260; // pixels

/** Add a text to a draft, each of its lines marked as quoted. */
function withQuotation(draft: string, quoted: string): string {
  const lines = quoted.trim().split("\n");
  return `${draft.trimEnd()}${draft.trim() && "\n\n"}${lines.map((line) => `> ${line}`).join("\n")}\n\n`;
}

interface MessageAreaProps {
  area: RefObject<HTMLTextAreaElement | null>;
  text: string;
  placeholder: string;
  onChange: (text: string) => void;
  onKeyDown: (event: KeyboardEvent) => void;
  onPaste: (event: ClipboardEvent) => void;
}

/** A text area as high as its text. */
function MessageArea({ area, text, placeholder, onChange, onKeyDown, onPaste }: MessageAreaProps) {
  useLayoutEffect(() => {
    // On a phone the focus would bring up the keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, [area]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, MAX_HEIGHT)}px`;
  }, [area, text]);
  return (
    <textarea
      ref={area}
      rows={1}
      value={text}
      placeholder={placeholder}
      aria-label="Message"
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    />
  );
}
