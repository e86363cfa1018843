// The console.
import { render } from "preact";
import { App } from "./app.js";
import { rejoin } from "./views/ask/turns.js";

rejoin();

const root = document.getElementById("root");
if (root) render(<App />, root);
