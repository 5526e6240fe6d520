/**
 * Compares two versions of an agent's texts line by line. The command `effect runs texts` and the page show the result. The
 * page loads this file, so it imports nothing.
 *
 * @example
 * ```ts
 * textChanges({ style: "Answer.\nBe brief." }, { style: "Answer.\nBe kind." })
 * // [{ name: "style", lines: [{ kind: "same", line: "Answer." }, { kind: "removed", line: "Be brief." }, …] }]
 * ```
 */

/** A line of either version: in both, only in the first, or only in the second. */
interface LineChange {
  readonly kind: "same" | "removed" | "added"
  readonly line: string
}

/** A text that differs between two versions of an agent's texts. */
interface TextChanges {
  readonly name: string
  readonly lines: ReadonlyArray<LineChange>
}

/**
 * The number of cells that the tables of all compared texts may have together. A text whose table does not fit is compared as
 * a whole. Two texts of 2,000 lines fit.
 */
const mostCells = 2001 ** 2

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

/** Lists the lines of two versions in order; removed lines come before the added ones that replace them. */
const changesOf = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<LineChange> => {
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

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.split("\n"))

/** Lists the texts of `after` that differ from those in `before`, in order. A text that is new has only added lines. */
export const textChanges = (
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): ReadonlyArray<TextChanges> => {
  let cellsLeft = mostCells
  return Object.entries(after).flatMap(([name, text]) => {
    const earlier = Object.hasOwn(before, name) ? before[name] : ""
    if (earlier === text) return []
    const [first, second] = [linesOf(earlier), linesOf(text)]
    const cells = (first.length + 1) * (second.length + 1)
    if (cells > cellsLeft) {
      const removed = first.map((line): LineChange => ({ kind: "removed", line }))
      return [{ name, lines: [...removed, ...second.map((line): LineChange => ({ kind: "added", line }))] }]
    }
    cellsLeft -= cells
    return [{ name, lines: changesOf(first, second) }]
  })
}
