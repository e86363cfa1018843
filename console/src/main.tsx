// The console: connects at once, so that data is under way while the page is painted.
import { render } from "preact";
import { App } from "./app.js";
import { signIn } from "./client/session.js";

signIn("");
const root = document.getElementById("root");
if (root) render(<App />, root);
