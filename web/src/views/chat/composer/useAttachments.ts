import { useState } from "react";
import { explain, type Uploaded, upload } from "../../../api/client";
import { IMAGE_TYPES, MAX_IMAGE_BYTES, MAX_IMAGES } from "../../../api/server.generated";

export interface AttachedPicture {
  name: string;
  src: string; // a data URL
}

export type AttachmentList = ReturnType<typeof useAttachments>;

/** The pictures and files of a message; pictures are sent with it, other files are uploaded when they are added. */
export function useAttachments(getSessionId: () => Promise<string>) {
  const [pictures, setPictures] = useState<AttachedPicture[]>([]);
  const [files, setFiles] = useState<Uploaded[]>([]);
  const [uploads, setUploads] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);

  const add = async (given: File[]) => {
    setProblem(null);
    const { shown, others } = sortFiles(given, pictures.length);
    const read = await Promise.all(shown.map(async (file) => ({ name: file.name, src: await readAsDataUrl(file) })));
    setPictures((before) => [...before, ...read]);
    if (others.length === 0) return;
    setUploads((count) => count + 1);
    try {
      const uploaded = await upload(await getSessionId(), others);
      setFiles((before) => [...before, ...uploaded]);
    } catch (error) {
      setProblem(explain(error));
    } finally {
      setUploads((count) => count - 1);
    }
  };

  return {
    pictures,
    files,
    isUploading: uploads > 0,
    problem,
    add,
    set: (pictures: AttachedPicture[], files: Uploaded[]) => {
      setProblem(null);
      setPictures(pictures);
      setFiles(files);
    },
  };
}

/** Separate the pictures that a model can be shown from the files that are uploaded. */
export function sortFiles<F extends { type: string; size: number }>(given: F[], pictureCount: number) {
  const isPicture = (file: F) => (IMAGE_TYPES as readonly string[]).includes(file.type) && file.size <= MAX_IMAGE_BYTES;
  const shown = given.filter(isPicture).slice(0, Math.max(0, MAX_IMAGES - pictureCount));
  return { shown, others: given.filter((file) => !shown.includes(file)) };
}

function readAsDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} could not be read`));
    reader.readAsDataURL(file);
  });
}
