/** Dates and times as agents store them, and as the browser's pickers take them. */

const DAY = /^\d{4}-\d\d-\d\d$/;
const TIME = /^(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?$/;

export function isDay(text: string): boolean {
  return DAY.test(text) && !Number.isNaN(Date.parse(text));
}

/** Whether a text is an instant: with a time zone, so that it can be shown in the viewer's. */
export function isInstant(text: string): boolean {
  return TIME.exec(text)?.[4] !== undefined && !Number.isNaN(Date.parse(text));
}

/** Return the value of a picker for a stored time, or null if the picker cannot show it. */
export function toPicker(stored: string): string | null {
  const [whole, day, , time] = TIME.exec(stored) ?? [];
  if (whole === undefined) return stored === "" ? "" : null;
  if (!isInstant(stored)) return `${day}T${time}`;
  const at = new Date(stored);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, at.getSeconds() ? 19 : 16);
}

/** Return the time to store for the value of a picker: in UTC, unless the time before had no time zone. */
export function fromPicker(picked: string, before: string): string {
  if (picked === "") return "";
  const [whole, , separator, , zone] = TIME.exec(before) ?? [];
  if (whole !== undefined && zone === undefined) return picked.replace("T", separator ?? "T");
  return new Date(picked).toISOString().replace(".000Z", "Z");
}
