// The views, in the order of the navigation. A new one is a folder here and a line below.
import type { FunctionComponent } from "preact";
import { Agents } from "./agents/index.js";
import { Ask } from "./ask/index.js";
import { Flows } from "./flows/index.js";
import { Health } from "./health/index.js";
import { Library } from "./library/index.js";
import { Traces } from "./traces/index.js";

export interface View {
  path: string;
  name: string;
  show: FunctionComponent;
}

export const views: View[] = [
  { path: "", name: "Ask", show: Ask },
  { path: "agents", name: "Agents", show: Agents },
  { path: "library", name: "Library", show: Library },
  { path: "traces", name: "Traces", show: Traces },
  { path: "flows", name: "Flows", show: Flows },
  { path: "health", name: "Health", show: Health },
];
