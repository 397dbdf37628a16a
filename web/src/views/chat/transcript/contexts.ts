/** The run and the agent of the items of an answer. */

import { createContext } from "react";

/** The id of the run, for answering approvals. */
export const RunOfItems = createContext<string | null>(null);

/** The id of the agent, for the changes of its database. */
export const AgentOfItems = createContext<string | null>(null);
