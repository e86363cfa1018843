// The page of the endpoints: both descriptions, built in, to be read and searched.
import { render } from "preact";
import { Docs } from "./docs/index.js";

const root = document.getElementById("root");
if (root) render(<Docs />, root);
