/**
 * Compares two versions of a text line by line. The command `effect runs texts` and the page show the result. The page loads
 * this file, so it imports nothing.
 *
 * @example
 * ```ts
 * lineChanges("Answer.\nBe brief.", "Answer.\nBe kind.")
 * // [{ kind: "same", line: "Answer." }, { kind: "removed", line: "Be brief." }, { kind: "added", line: "Be kind." }]
 * ```
 */

/** A line of either version: in both, only in the first, or only in the second. */
interface LineChange {
  readonly kind: "same" | "removed" | "added"
  readonly line: string
}

/** Texts with more lines than this are compared as a whole, because the table of the comparison would be large. */
const mostLines = 2000

/** Returns the lengths of the longest common subsequences of all ends of two lists of lines, row by row. */
const commonLengths = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): Uint32Array => {
  const width = after.length + 1
  const lengths = new Uint32Array((before.length + 1) * width)
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--) {
      const at = row * width + column
      const isSame = before[row] === after[column]
      lengths[at] = isSame ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1])
    }
  return lengths
}

/** Lists the lines of two versions of a text in order; removed lines come before the added ones that replace them. */
export const lineChanges = (first: string, second: string): ReadonlyArray<LineChange> => {
  const before = first === "" ? [] : first.split("\n")
  const after = second === "" ? [] : second.split("\n")
  const whole = (lines: ReadonlyArray<string>, kind: LineChange["kind"]) => lines.map((line) => ({ kind, line }))
  if (before.length > mostLines || after.length > mostLines)
    return first === second ? whole(before, "same") : [...whole(before, "removed"), ...whole(after, "added")]
  const lengths = commonLengths(before, after)
  const width = after.length + 1
  const changes: Array<LineChange> = []
  let [row, column] = [0, 0]
  while (row < before.length || column < after.length) {
    const at = row * width + column
    if (row < before.length && column < after.length && before[row] === after[column]) {
      changes.push({ kind: "same", line: before[row] })
      row++
      column++
    } else if (column >= after.length || (row < before.length && lengths[at + width] >= lengths[at + 1]))
      changes.push({ kind: "removed", line: before[row++] })
    else changes.push({ kind: "added", line: after[column++] })
  }
  return changes
}
