/** Icons, as SVG paths in this file, so that nothing is loaded from elsewhere. */

const PATHS = {
  clock: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z",
  plus: "M12 5v14M5 12h14",
  chat: "M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-8l-4 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1Z",
  chart: "M4 20h16M7 16v-5M12 16V6M17 16v-8",
  search: "m20 20-4.5-4.5M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14Z",
  calendar: "M4 9h16M8 3v4M16 3v4M5 5h14a1 1 0 0 1 1 1v13a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1Z",
  inbox: "M4 13h4l1.5 3h5L16 13h4M5.5 5h13L20 13v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-5L5.5 5Z",
  agent:
    "M12 3v3M7 6h10a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2ZM9 11v1M15 11v1M9 21h6M2 11v3M22 11v3",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  pause: "M9 5v14M15 5v14",
  play: "M8 5.5v13l10-6.5-10-6.5Z",
  stop: "M7 7h10v10H7z",
  send: "M12 19V6M6 11l6-6 6 6",
  attach: "m19 11-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.2a3 3 0 0 1 4.3 4.3l-7.8 7.7a1.5 1.5 0 0 1-2.2-2.1l7-7",
  close: "m6 6 12 12M18 6 6 18",
  check: "m5 12.5 4.5 4.5L19 7.5",
  alert: "M12 8v5M12 16.5v.2M12 3 2.5 20h19L12 3Z",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  chevron: "m9 6 6 6-6 6",
  down: "m6 9 6 6 6-6",
  menu: "M4 7h16M4 12h16M4 17h16",
  tool: "M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3 2.5-2.5Z",
  thought: "M12 4a7 7 0 0 0-4 12.7V19h8v-2.3A7 7 0 0 0 12 4ZM9.5 22h5",
  plan: "M9 6h11M9 12h11M9 18h11M4.5 6h.1M4.5 12h.1M4.5 18h.1",
  file: "M7 3h7l5 5v13H7zM14 3v5h5",
  more: "M6 12h.1M12 12h.1M18 12h.1",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15L6 16ZM10 21h4",
  mute: "M8 6.5A6 6 0 0 1 18 11v4M6 11v5l-1.5 2H17M10 21h4M4 3l16 18",
  back: "m15 6-6 6 6 6",
  down2: "M12 5v13M6 13l6 6 6-6",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  table: "M4 5h16v14H4zM4 10h16M10 10v9",
  filter: "M4 6h16M7 12h10M10 18h4",
  quote: "M6 17V9h5v5a3 3 0 0 1-3 3H6ZM14 17V9h5v5a3 3 0 0 1-3 3h-2Z",
  edit: "m5 19 1-4L16 5l3 3L9 18l-4 1Z",
  retry: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
  pin: "m9 4 6 0-1 6 3 3H7l3-3-1-6ZM12 13v7",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
