/** The run and the agent of the items of an answer, and the message that is searched for. */

import { createContext } from "react";

/** The id of the run, for answering approvals. */
export const RunOfItems = createContext<string | null>(null);

/** The id of the agent, for the changes of its database. */
export const AgentOfItems = createContext<string | null>(null);

/** The id of the message to scroll to: an earlier version that has it is opened. */
export const WantedMessage = createContext<string | null>(null);
