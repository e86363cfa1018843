// A JSON schema as a list of fields.
import { Inline } from "../parts/inline.js";
import { list, object, text, type Json } from "../client/wire.js";
import { refName, resolved } from "./read.js";

/** Nested objects that are shown. */
const DEEPEST = 4;

const typeOf = (schema: Json): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (Array.isArray(schema.oneOf)) return schema.oneOf.map((one) => refName(one) || typeOf(one as Json)).join(" | ");
  const type = Array.isArray(schema.type) ? schema.type.join(" | ") : text(schema, "type");
  const of = type.includes("array") ? refName(schema.items) || typeOf(object(schema, "items")) : "";
  return of && of !== "any" ? `${type} of ${of}` : type || "any";
};

export const Schema = ({ spec, schema, depth = 0 }: { spec: Json; schema: Json; depth?: number }) => {
  const required = list<string>(schema, "required");
  const fields = Object.entries(object(schema, "properties"));
  if (fields.length === 0) return depth === 0 ? <p class="muted">{typeOf(schema)}</p> : null;
  return (
    <dl class="fields">
      {fields.map(([name, value]) => {
        const field = resolved(spec, value);
        const inner = resolved(spec, field.items ?? field);
        return [
          <dt key={name}>
            <code>{name}</code>
            {required.includes(name) && <span class="needed"> required</span>}
          </dt>,
          <dd key={`${name}=`}>
            <span class="muted">{refName(value) || typeOf(field)}</span>{" "}
            {text(field, "description") && <Inline text={text(field, "description")} />}
            {depth < DEEPEST && <Schema spec={spec} schema={inner} depth={depth + 1} />}
          </dd>,
        ];
      })}
    </dl>
  );
};
