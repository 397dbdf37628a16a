/** Templates of new agents: the switches and the prompt that they start with. All of them can be changed. */

import type { NewAgent } from "../../api/rest.generated";
import { TOOLSETS } from "../../api/server.generated";

export interface Switches {
  selfScheduling: boolean;
  mode: "ambient" | "reactive" | "project"; // while it schedules its own runs
  database: boolean;
  notify: boolean; // only with self-scheduling
}

interface Template extends Switches {
  label: string;
  text: string;
  prompt: string;
}

export const TEMPLATES = {
  helper: {
    label: "Helper",
    text: "Does what you ask, and comes back by itself when something is due.",
    selfScheduling: true,
    mode: "ambient",
    database: false,
    notify: true,
    prompt:
      "You are a helper who comes back. If something is due later, or needs another look, schedule your own run for it " +
      "and say when that is. In that run, do the work, and notify me if I need to know. Schedule another run only if " +
      "there is more to do.",
  },
  watcher: {
    label: "Watcher",
    text: "Looks at something again and again, and tells you when it changes.",
    selfScheduling: true,
    mode: "reactive",
    database: false,
    notify: true,
    prompt:
      "You watch what I name, such as a web page or a file. Look at it, compare it with your notes of the last time, and " +
      "write down what you saw in a file. Notify me only if something has changed. Before you end, schedule your next run.",
  },
  journal: {
    label: "Journal",
    text: "Keeps what you tell it in its database, and reminds you of it.",
    selfScheduling: true,
    mode: "ambient",
    database: true,
    notify: true,
    prompt:
      "You keep a journal for me in your database. Save what I tell you, with its date, in a table that fits it. Answer " +
      "my questions from your tables. If I name a time, schedule your own run for it, and notify me then.",
  },
  empty: {
    label: "Empty",
    text: "Works when you write to it. You decide everything else.",
    selfScheduling: false,
    mode: "ambient",
    database: false,
    notify: false,
    prompt: "",
  },
} satisfies Record<string, Template>;

export type TemplateName = keyof typeof TEMPLATES;

const SCHEDULING = ["recall", "scheduler", "next_run"];

/** Return the request for an agent with these switches. */
export function newAgentOf(name: string, description: string, prompt: string, has: Switches): NewAgent {
  const toolsets = [
    "files",
    "web",
    ...(has.selfScheduling ? SCHEDULING : []),
    ...(has.database ? ["database"] : []),
    ...(has.selfScheduling && has.notify ? ["notify"] : []),
  ];
  return {
    name,
    description,
    system_prompt: prompt.trim(),
    toolsets: Object.keys(TOOLSETS).filter((each) => toolsets.includes(each)) as NonNullable<NewAgent["toolsets"]>,
    self_scheduling: has.selfScheduling,
    ...(has.selfScheduling && { schedule: { mode: has.mode } }),
  };
}
