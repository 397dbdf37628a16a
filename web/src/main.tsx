import "./styles/base.css";
import "./styles/controls.css";
import "./styles/tables.css";
import "./styles/touch.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { App } from "./App";
import { BASE, enterBase } from "./api/base";
import { startWorker } from "./api/worker";
import { applyTheme } from "./components/frame/theme";

applyTheme();
enterBase();
startWorker();
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Router base={BASE}>
        <App />
      </Router>
    </StrictMode>,
  );
