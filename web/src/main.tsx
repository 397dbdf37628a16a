import "./styles/base.css";
import "./styles/controls.css";
import "./styles/tables.css";
import "./styles/touch.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { startWorker } from "./api/worker";
import { applyTheme } from "./components/frame/theme";

applyTheme();
startWorker();
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
