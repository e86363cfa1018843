// One WebSocket for everything the page asks: each question has an id, its parts come back under it in order. The token
// is said in the first frame and kept in memory only, to say it again when the connection was lost.
import { Failure, failure, type Json } from "./wire.js";

/** How the connection stands. `refused`: the token is not known. */
export type Standing = "connecting" | "open" | "refused" | "lost";

/** Where a part of a run stands: its number, from 0 on. */
export interface Place {
  run: string;
  offset: number;
}

/** How an answer is followed. */
export interface Following {
  /** Each part as it comes, the last one too. `place`: of runs of the agent, which can be joined again. */
  part?: (part: Json, place?: Place) => void;
  /** Ends the question down to the model. */
  signal?: AbortSignal;
}

/** A question. `flow`: it is for a service of that flow. */
export interface Question extends Following {
  service: string;
  request: Json;
  flow?: string;
  /** What becomes of it when the connection is lost, in the gateway's words. */
  onDisconnect?: string;
}

interface Open {
  part: Following["part"];
  done: (last: Json) => void;
  failed: (why: Failure) => void;
}

const placeOf = ({ run, offset }: Json): Place | undefined =>
  typeof run === "string" && typeof offset === "number" ? { run, offset } : undefined;

const PAUSES = [300, 1_000, 2_000, 5_000, 10_000];

export class Connection {
  /** Called whenever the standing changes. */
  onStanding: (standing: Standing) => void = () => {};
  standing: Standing = "connecting";
  private readonly url: string;
  private socket: WebSocket | undefined;
  private token = "";
  private next = 1;
  private lost = 0;
  private readonly open = new Map<number, Open>();
  private readonly waiting: string[] = [];
  private readonly resting = new Set<() => void>();

  constructor(url: string) {
    this.url = url;
  }

  /** Connects, as whom the token says; the empty one is nobody in particular. */
  connect(token: string): void {
    this.token = token;
    this.stand("connecting");
    const before = this.socket;
    this.socket = undefined;
    before?.close();
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: "auth", token }));
      // Nobody in particular has no secret to be sure of: the first questions follow at once. Where a token is wanted,
      // its refusal comes before theirs.
      if (!token) this.opened();
    };
    socket.onmessage = (event) => this.socket === socket && this.hear(JSON.parse(String(event.data)) as Json);
    socket.onclose = () => this.socket === socket && this.closed();
  }

  /** Asks, and returns the last part of the answer. */
  ask(question: Question): Promise<Json> {
    const { service, request, flow, onDisconnect } = question;
    const frame: Json = { service, request };
    if (flow) frame.flow = flow;
    if (onDisconnect) frame["on-disconnect"] = onDisconnect;
    return this.follow(frame, question);
  }

  /** Joins a run of the agent again, behind the part that is known; without an `offset` from its first part on. */
  resume(place: { run: string; offset?: number }, following: Following): Promise<Json> {
    return this.follow({ resume: place }, following);
  }

  private follow(asks: Json, { part, signal }: Following): Promise<Json> {
    const id = this.next++;
    return new Promise<Json>((done, failed) => {
      if (signal?.aborted) return failed(new Failure("cancelled", "stopped"));
      this.open.set(id, { part, done, failed });
      this.send(JSON.stringify({ id, ...asks }));
      signal?.addEventListener("abort", () => {
        if (!this.end(id)) return;
        this.send(JSON.stringify({ type: "cancel", id }));
        failed(new Failure("cancelled", "stopped"));
      });
    });
  }

  /** Waits until no question is under way, for `most` milliseconds at the longest. */
  rest(most: number): Promise<void> {
    return new Promise((done) => {
      const end = (): void => {
        clearTimeout(timer);
        this.resting.delete(end);
        done();
      };
      const timer = setTimeout(end, most);
      this.resting.add(end);
    });
  }

  /** A question is over. `false`: it was so before. */
  private end(id: number): boolean {
    const was = this.open.delete(id);
    if (this.open.size === 0) this.rests();
    return was;
  }

  private rests(): void {
    for (const end of [...this.resting]) end();
  }

  /** What is asked before the connection stands waits for it. */
  private send(frame: string): void {
    if (this.standing === "open") this.socket?.send(frame);
    else this.waiting.push(frame);
  }

  private hear(frame: Json): void {
    if (frame.type === "auth-ok") {
      this.lost = 0;
      if (this.standing !== "open") this.opened();
      return;
    }
    if (frame.type === "auth-failed") {
      const socket = this.socket;
      this.socket = undefined;
      socket?.close();
      this.forget(new Failure("auth-failure", "The token is not accepted."));
      return this.stand("refused");
    }
    const asked = this.open.get(frame.id as number);
    if (!asked) return;
    const response = (frame.response ?? {}) as Json;
    const error = frame.error ?? response.error;
    if (error) {
      this.end(frame.id as number);
      return asked.failed(failure(error));
    }
    asked.part?.(response, placeOf(frame));
    if (frame.complete === true) {
      this.end(frame.id as number);
      asked.done(response);
    }
  }

  private opened(): void {
    this.stand("open");
    for (const waits of this.waiting.splice(0)) this.socket?.send(waits);
  }

  private closed(): void {
    this.forget(new Failure("lost", "The connection was lost."));
    this.stand("lost");
    const pause = PAUSES[Math.min(this.lost++, PAUSES.length - 1)];
    setTimeout(() => this.standing === "lost" && this.connect(this.token), pause);
  }

  private forget(why: Failure): void {
    this.waiting.length = 0;
    const open = [...this.open.values()];
    this.open.clear();
    this.rests();
    for (const asked of open) asked.failed(why);
  }

  private stand(standing: Standing): void {
    this.standing = standing;
    this.onStanding(standing);
  }
}
