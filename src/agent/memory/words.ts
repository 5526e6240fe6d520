/**
 * The words of a text, for comparing texts: letters and digits in lower case, without accents' different spellings.
 *
 * @example
 * ```ts
 * words("A door, 3 keys!") // ["a", "door", "3", "keys"]
 * ```
 */
export const words = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
