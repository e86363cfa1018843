// The steps of a run as the graph keeps them: entities with what is said of each.
import { inOrder } from "./order.js";
import { retrieval } from "./services.js";
import { plain, type Term, type Triple } from "./wire.js";

const TG = "https://trustgraph.ai/ns/";
const PROV = "http://www.w3.org/ns/prov#";
const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const LABEL = "http://www.w3.org/2000/01/rdf-schema#label";
/** More than any sensible trace has. */
const MOST = 500;

/** A step, or what one selected. */
export interface Entity {
  id: string;
  label: string;
  /** Classes of the trace vocabulary. */
  kinds: string[];
  /** What is said of it, by the last part of the predicate. */
  said: Map<string, Term[]>;
  above: string[];
}

/** A question that left a trace. */
export interface Asked {
  id: string;
  question: string;
  time: string;
}

export const iri = (value: string): Term => ({ t: "i", i: value });

/** What triples say of an entity; nothing if they say nothing. */
export const entity = (id: string, triples: Triple[]): Entity | undefined => {
  const own = triples.filter((triple) => plain(triple.s) === id && triple.o);
  if (own.length === 0) return undefined;
  const said = new Map<string, Term[]>();
  const [kinds, above]: [string[], string[]] = [[], []];
  let label = "";
  for (const { p, o } of own) {
    const predicate = plain(p);
    if (predicate === RDF_TYPE && plain(o).startsWith(TG)) kinds.push(plain(o).slice(TG.length));
    else if (predicate === LABEL) label = plain(o);
    else if (predicate === `${PROV}wasDerivedFrom`) above.push(plain(o));
    else if (predicate !== RDF_TYPE && o) {
      const name = predicate.replace(/^.*[/#]/, "");
      said.set(name, [...(said.get(name) ?? []), o]);
    }
  }
  return { id, label: label || kinds[0] || id, kinds, said, above };
};

const about = async (id: string): Promise<Entity | undefined> =>
  entity(id, await retrieval({ s: iri(id), limit: 1000 }));

/** Entities by id, those of which nothing is said left out. */
export const entities = async (ids: string[]): Promise<Entity[]> =>
  (await Promise.all(ids.slice(0, MOST).map(about))).filter((one) => one !== undefined);

/** All steps below a question, itself first, in the order in which they are told. */
export const steps = async (root: string): Promise<Entity[]> => {
  const found: Entity[] = [];
  const seen = new Set([root]);
  let frontier = [root];
  while (frontier.length > 0 && found.length < MOST) {
    const [own, below] = await Promise.all([
      entities(frontier),
      Promise.all(frontier.map((id) => retrieval({ p: iri(`${PROV}wasDerivedFrom`), o: iri(id), limit: MOST }))),
    ]);
    found.push(...own);
    frontier = [...new Set(below.flat().map((triple) => plain(triple.s)))].filter((id) => !seen.has(id));
    for (const id of frontier) seen.add(id);
  }
  return inOrder(root, found);
};

/** The newest questions that nobody's run asked. */
export const questions = async (most: number): Promise<Asked[]> => {
  const [texts, times] = await Promise.all([
    retrieval({ p: iri(`${TG}query`), limit: 1000 }),
    retrieval({ p: iri(`${PROV}startedAtTime`), limit: 1000 }),
  ]);
  const began = new Map(times.map((triple) => [plain(triple.s), plain(triple.o)]));
  const all = texts.map((triple): Asked => {
    const id = plain(triple.s);
    return { id, question: plain(triple.o), time: began.get(id) ?? "" };
  });
  const newest = all.sort((left, right) => right.time.localeCompare(left.time)).slice(0, most * 2);
  const derived = await Promise.all(
    newest.map((one) => retrieval({ s: iri(one.id), p: iri(`${PROV}wasDerivedFrom`), limit: 1 })),
  );
  return newest.filter((_, at) => derived[at]?.length === 0).slice(0, most);
};
