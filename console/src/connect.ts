// Connects before the page itself is run, so that data is under way while it is drawn.
import { signIn } from "./client/session.js";

signIn("");
