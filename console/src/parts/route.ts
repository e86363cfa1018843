// Which view is shown: the part of the address after `#/`. Nothing secret is ever in it.
import { signal } from "@preact/signals";

const read = (): string => location.hash.replace(/^#\/?/, "").split("?")[0] ?? "";

export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});
