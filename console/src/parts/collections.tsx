// The collection that documents go to and questions search. With one collection there is nothing to choose.
import { collections } from "../client/services.js";
import { collection } from "../client/session.js";
import { useLoaded } from "./loaded.js";

/** It is always there. */
const FIRST = "default";

/** `id`: of the element, for its label. */
export const Collections = ({ id }: { id: string }) => {
  const { data } = useLoaded(collections);
  const names = [...new Set([FIRST, collection.value, ...(data ?? [])])].sort();
  if (names.length < 2) return null;
  return (
    <>
      <label class="hidden" for={id}>
        Collection
      </label>
      <select id={id} value={collection.value} onChange={(event) => (collection.value = event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </>
  );
};
