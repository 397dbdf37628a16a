import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { applyTheme } from "./components/theme";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/shell.css";
import "./styles/chat.css";
import "./styles/places.css";
import "./styles/data.css";

applyTheme();
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
