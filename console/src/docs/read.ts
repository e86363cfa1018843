// Reading a description: references are followed, operations and messages listed.
import { list, object, text, type Json } from "../client/wire.js";

/** What a `$ref` means; anything else as it is. */
export const resolved = (spec: Json, value: unknown): Json => {
  let found = (value ?? {}) as Json;
  for (let hop = 0; hop < 5 && typeof found.$ref === "string"; hop++) {
    const parts = found.$ref.replace(/^#\//, "").split("/");
    const step = (at: unknown, part: string) => (at as Json | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    found = (parts.reduce<unknown>(step, spec) ?? {}) as Json;
  }
  return found;
};

/** The last part of a reference. */
export const refName = (value: unknown): string => text((value ?? {}) as Json, "$ref").split("/").pop() ?? "";

/** An example with its name. */
export interface Example {
  name: string;
  value: unknown;
}

/** What one can do at an endpoint. */
export interface Entry {
  id: string;
  badge: string;
  title: string;
  group: string;
  summary: string;
  description: string;
  parameters: Json[];
  body: { kind: string; schema: Json; examples: Example[] }[];
  answers: { status: string; description: string; kinds: string; examples: Example[] }[];
  tables: [string, string[]][];
}

const examples = (of: Json): Example[] =>
  Object.entries(object(of, "examples")).map(([name, one]) => ({ name, value: (one as Json).value }));

const bodies = (spec: Json, holder: Json): Entry["body"] =>
  Object.entries(object(holder, "content")).map(([kind, media]) => ({
    kind,
    schema: resolved(spec, (media as Json).schema),
    examples: examples(media as Json),
  }));

/** `x-operations`, `x-kinds` and `x-capability`: what each takes. */
const tables = (operation: Json): [string, string[]][] => {
  const gates = Object.entries(object(operation, "x-operations")).map(([gate, names]) => `${gate}: ${(names as string[]).join(", ")}`);
  const kinds = Object.entries(object(operation, "x-kinds")).map(([kind, gate]) => `${kind}: ${String(gate)}`);
  const capability = text(operation, "x-capability");
  const all: [string, string[]][] = [
    ["What operations take", gates],
    ["What kinds take", kinds],
    ["What it takes", capability ? [capability] : []],
  ];
  return all.filter(([, lines]) => lines.length > 0);
};

/** The operations of an OpenAPI description. */
export const operations = (spec: Json): Entry[] =>
  Object.entries(object(spec, "paths")).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, value]): Entry => {
      const operation = value as Json;
      return {
        id: text(operation, "operationId"),
        badge: method.toUpperCase(),
        title: path,
        group: list<string>(operation, "tags")[0] ?? "",
        summary: text(operation, "summary"),
        description: text(operation, "description"),
        parameters: list(operation, "parameters").map((one) => resolved(spec, one)),
        body: bodies(spec, resolved(spec, operation.requestBody)),
        answers: Object.entries(object(operation, "responses")).map(([status, answer]) => {
          const said = resolved(spec, answer);
          const media = Object.entries(object(said, "content"));
          return {
            status,
            description: text(said, "description"),
            kinds: media.map(([kind]) => kind).join(", "),
            examples: media.flatMap(([, one]) => examples(one as Json)),
          };
        }),
        tables: tables(operation),
      };
    }),
  );

/** The messages of an AsyncAPI description, by channel. */
export const messages = (spec: Json): Entry[] =>
  Object.entries(object(spec, "channels")).flatMap(([channel, value]) => {
    const { address } = value as Json;
    return Object.entries(object(value as Json, "messages")).map(([name, reference]): Entry => {
      const message = resolved(spec, reference);
      const shown = list(message, "examples").map((one) => ({ name: text(one, "name"), value: one.payload }));
      return {
        id: `${channel}-${name}`,
        badge: direction(spec, channel, name),
        title: name,
        group: String(address),
        summary: text(message, "summary"),
        description: "",
        parameters: [],
        body: [{ kind: "payload", schema: resolved(spec, message.payload), examples: shown }],
        answers: [],
        tables: [],
      };
    });
  });

/** Whether a client sends a message, gets it, or both. */
const direction = (spec: Json, channel: string, name: string): string => {
  const reference = `#/channels/${channel}/messages/${name}`;
  const has = (of: unknown): boolean => list(of as Json, "messages").some((one) => one.$ref === reference);
  const all = Object.values(object(spec, "operations")) as Json[];
  const sends = all.some((one) => one.action === "receive" && has(one));
  const gets = all.some((one) => has(one.reply) || (one.action === "send" && has(one)));
  return sends && gets ? "BOTH" : sends ? "SEND" : "GET";
};
