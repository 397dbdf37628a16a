import { useRef } from "react";
import { Icon } from "../../../components/ui/Icon";
import type { AttachmentList } from "./useAttachments";

export function Attachments({ attached: { pictures, files, isUploading, set } }: { attached: AttachmentList }) {
  if (pictures.length === 0 && files.length === 0 && !isUploading) return null;
  return (
    <ul className="attachments" aria-label="Attachments">
      {pictures.map((picture, index) => (
        <li key={index} className="chip picture">
          <img src={picture.src} alt="" />
          {picture.name}
          <RemoveButton name={picture.name} onClick={() => set(pictures.toSpliced(index, 1), files)} />
        </li>
      ))}
      {files.map((file, index) => (
        <li key={file.path} className="chip">
          <Icon name="file" size={14} />
          {file.name}
          <RemoveButton name={file.name} onClick={() => set(pictures, files.toSpliced(index, 1))} />
        </li>
      ))}
      {isUploading && (
        <li className="chip" role="status">
          <span className="shimmer">Uploading</span>
        </li>
      )}
    </ul>
  );
}

function RemoveButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button type="button" className="quiet icon-only tiny" aria-label={`Remove ${name}`} onClick={onClick}>
      <Icon name="close" size={13} />
    </button>
  );
}

export function AttachButton({ onFiles }: { onFiles: (files: File[]) => unknown }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
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
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </>
  );
}
