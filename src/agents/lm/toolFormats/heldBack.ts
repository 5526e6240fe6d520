/**
 * Returns how many characters at the beginning of `text` can be passed on before more text arrives: all except whitespace and
 * a beginning of `tag` at its end.
 */
export const heldBack = (text: string, tag: string): number => {
  let begun = Math.min(text.length, tag.length - 1)
  while (begun > 0 && !tag.startsWith(text.slice(text.length - begun))) begun--
  return text.slice(0, text.length - begun).trimEnd().length
}
