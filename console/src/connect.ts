// Connects as soon as it is here, also before the page itself and its style are, so that data is under way while it is drawn.
import { signIn } from "./client/session.js";

signIn("");
