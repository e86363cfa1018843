// Places of short texts in bytes; each character of a text is one byte.

const at = (bytes: Uint8Array, what: string, place: number): boolean => {
  for (let one = 0; one < what.length; one++) if (bytes[place + one] !== what.charCodeAt(one)) return false;
  return true;
};

export const starts = (bytes: Uint8Array, what: string): boolean => bytes.length >= what.length && at(bytes, what, 0);

/** The first place of something from `from` on; -1 if there is none. */
export const find = (bytes: Uint8Array, what: string, from = 0): number => {
  const first = what.charCodeAt(0);
  for (let place = bytes.indexOf(first, from); place >= 0; place = bytes.indexOf(first, place + 1)) {
    if (place + what.length <= bytes.length && at(bytes, what, place)) return place;
  }
  return -1;
};

/** The last place of something that ends before `until`; -1 if there is none. */
export const findLast = (bytes: Uint8Array, what: string, until = bytes.length): number => {
  const first = what.charCodeAt(0);
  let place = until - what.length;
  while (place >= 0) {
    place = bytes.lastIndexOf(first, place);
    if (place < 0 || at(bytes, what, place)) return place;
    place -= 1;
  }
  return -1;
};

/** One character for each byte. For what is short. */
export const letters = (bytes: Uint8Array): string => {
  let text = "";
  for (let from = 0; from < bytes.length; from += 0x8000) text += String.fromCharCode(...bytes.subarray(from, from + 0x8000));
  return text;
};
