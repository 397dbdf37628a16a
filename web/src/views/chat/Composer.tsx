/** Where a person writes: text, pictures and files, by keys, button, paste and drop. */

import {
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { explain, Refused, type Uploaded, upload } from "../../api/client";
import { Icon } from "../../components/Icon";

export interface Outgoing {
  content: string;
  images: string[]; // data addresses
  files: Uploaded[];
}

interface Picture {
  name: string;
  src: string;
}

interface Props {
  draftKey: string;
  sessionId: string | null; // null: it begins with the first message
  beginSession: () => Promise<string>;
  isBusy: boolean;
  isHeadless: boolean; // what keeps the session busy is a wake
  endings: number;
  onSend: (message: Outgoing, sessionId: string) => Promise<void>;
  onStop: (() => void) | null;
  placeholder: string;
  children?: ReactNode;
}

const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const MOST_PICTURES = 10;
const MOST_PICTURE = 5 * 1024 * 1024;

export function Composer(props: Props) {
  const { draftKey, sessionId, beginSession, isBusy, isHeadless, endings, onSend, onStop } = props;
  const [text, setText] = useDraft(draftKey);
  const [pictures, setPictures] = useState<Picture[]>([]);
  const [files, setFiles] = useState<Uploaded[]>([]);
  const [isQueued, setQueued] = useState(false);
  const waitsFor = useRef(0); // the count of endings that a queued message waits for
  const [isSending, setSending] = useState(false);
  const [uploading, setUploading] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);

  useLayoutEffect(() => {
    // On a phone the focus would bring up the keyboard over what one came to read.
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, []);

  const send = async () => {
    const content = text.trim();
    if (!content || isSending || uploading) return;
    if (isBusy) {
      waitsFor.current = 0;
      setQueued(true);
      return;
    }
    setSending(true);
    setQueued(false);
    setProblem(null);
    const kept = { text, pictures, files };
    setText("");
    setPictures([]);
    setFiles([]);
    try {
      await onSend(
        { content, images: pictures.map((picture) => picture.src), files },
        sessionId ?? (await beginSession()),
      );
    } catch (error) {
      setText(kept.text);
      setPictures(kept.pictures);
      setFiles(kept.files);
      if (error instanceof Refused && error.code === "session_busy") {
        // Someone else was first, in another window perhaps; the next end lets this one in.
        waitsFor.current = endings + 1;
        setQueued(true);
      } else setProblem(explain(error));
    } finally {
      setSending(false);
    }
  };

  const latestSend = useRef(send);
  latestSend.current = send;
  useEffect(() => {
    if (isQueued && !isBusy && endings >= waitsFor.current) void latestSend.current();
  }, [isQueued, isBusy, endings]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 260)}px`;
  }, [text]);

  const take = async (given: File[]) => {
    setProblem(null);
    const shown = given.filter((file) => PICTURES.test(file.type) && file.size <= MOST_PICTURE);
    const room = Math.max(0, MOST_PICTURES - pictures.length);
    const asPictures = await Promise.all(
      shown.slice(0, room).map(async (file) => ({ name: file.name, src: await readAsAddress(file) })),
    );
    setPictures((before) => [...before, ...asPictures]);
    const others = given.filter((file) => !shown.slice(0, room).includes(file));
    if (others.length === 0) return;
    setUploading((count) => count + 1);
    try {
      const kept = await upload(sessionId ?? (await beginSession()), others);
      setFiles((before) => [...before, ...kept]);
    } catch (error) {
      setProblem(explain(error));
    } finally {
      setUploading((count) => count - 1);
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      void send();
    }
    if (event.key === "Escape" && isQueued) setQueued(false);
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    void take(pasted);
  };

  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(event.type !== "dragleave" || event.relatedTarget !== null);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      void latestTake.current([...event.dataTransfer.files]);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  const latestTake = useRef(take);
  latestTake.current = take;

  return (
    <div className="composer">
      {isOver && <div className="drop-here">Drop pictures and files here</div>}
      {problem && (
        <p className="composer-problem" role="alert">
          <Icon name="alert" size={15} /> {problem}
        </p>
      )}
      {isQueued && (
        <p className="composer-queued" role="status">
          <Icon name="clock" size={15} />
          {isHeadless ? "A woken run is at work." : "It is still answering."} Your message is sent when it ends.
          <button type="button" className="quiet small" onClick={() => setQueued(false)}>
            Keep as draft
          </button>
        </p>
      )}
      <div className="composer-box">
        {(pictures.length > 0 || files.length > 0 || uploading > 0) && (
          <ul className="attachments" aria-label="Attachments">
            {pictures.map((picture, index) => (
              <li key={index} className="chip picture">
                <img src={picture.src} alt="" />
                {picture.name}
                <RemoveButton name={picture.name} onClick={() => setPictures(pictures.toSpliced(index, 1))} />
              </li>
            ))}
            {files.map((file, index) => (
              <li key={file.path} className="chip">
                <Icon name="file" size={14} />
                {file.name}
                <RemoveButton name={file.name} onClick={() => setFiles(files.toSpliced(index, 1))} />
              </li>
            ))}
            {uploading > 0 && (
              <li className="chip" role="status">
                <span className="at-work">Uploading</span>
              </li>
            )}
          </ul>
        )}
        <textarea
          ref={area}
          rows={1}
          value={text}
          placeholder={props.placeholder}
          aria-label="Message"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div className="composer-row">
          <button
            type="button"
            className="quiet icon-only"
            aria-label="Attach pictures or files"
            title="Attach pictures or files"
            onClick={() => picker.current?.click()}
          >
            <Icon name="attach" />
          </button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              void take([...(event.target.files ?? [])]);
              event.target.value = "";
            }}
          />
          {props.children}
          <span className="grow" />
          {onStop && (
            <button type="button" className="icon-only stop" aria-label="Stop" title="Stop" onClick={onStop}>
              <Icon name="stop" />
            </button>
          )}
          <button
            type="button"
            className="primary icon-only"
            aria-label={isBusy ? "Send when it ends" : "Send"}
            title={isBusy ? "Send when it ends" : "Send"}
            disabled={!text.trim() || isSending || uploading > 0 || isQueued}
            onClick={() => void send()}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
    </div>
  );
}

function RemoveButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button type="button" className="quiet icon-only tiny" aria-label={`Remove ${name}`} onClick={onClick}>
      <Icon name="close" size={13} />
    </button>
  );
}

/** What is written and not yet sent survives a reload. */
function useDraft(key: string): [string, (text: string) => void] {
  const name = `wakeful.draft.${key}`;
  const [draft, setDraft] = useState(() => ({ name, text: localStorage.getItem(name) ?? "" }));
  const current = draft.name === name ? draft : { name, text: localStorage.getItem(name) ?? "" };
  const set = (text: string) => {
    setDraft({ name, text });
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
  };
  return [current.text, set];
}

function readAsAddress(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
