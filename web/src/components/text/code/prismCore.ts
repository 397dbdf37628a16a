/** Prism without its automatic highlighting; the grammars expect it as a global. */

import Prism from "prismjs/components/prism-core";

Prism.manual = true; // it reads this when the document is ready: it must not touch the page itself
(globalThis as { Prism?: unknown }).Prism = Prism;

export { Prism };
