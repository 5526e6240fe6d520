/** Turns shapes into lines of text for terminals: the letters of a drawing, and its notes above them. */
import type { StagePoint, StageShape, Terminal } from "./shapes.ts"

/** Returns the picture as lines, without spaces at their ends. */
export const textOf = (shapes: ReadonlyArray<StageShape>, terminal: Terminal): string => {
  const { columns, rows, from, to, empty = " " } = terminal
  const row = Array.from({ length: columns }, (_, column) => empty.charAt(column % empty.length))
  const cells = Array.from({ length: rows }, () => [...row])
  const put = ([x, y]: StagePoint, letter: string): void => {
    const column = Math.round(((x - from[0]) / (to[0] - from[0])) * (columns - 1))
    const row = Math.round(((y - from[1]) / (to[1] - from[1])) * (rows - 1))
    if (cells[row]?.[column] !== undefined) cells[row][column] = letter
  }
  for (const { form, matrix } of shapes) {
    if (form.kind !== "letter") continue
    const [a, b, c, d, e, f] = matrix
    const points = form.points.map(([x, y]): StagePoint => [a * x + c * y + e, b * x + d * y + f])
    put(points[0], form.letter)
    for (let at = 1; at < points.length; at++) {
      const [[x, y], [toX, toY]] = [points[at - 1], points[at]]
      const steps = columns + rows
      for (let step = 0; step <= steps; step++)
        put([x + ((toX - x) * step) / steps, y + ((toY - y) * step) / steps], form.letter)
    }
  }
  const notes = shapes.flatMap(({ form }) => (form.kind === "note" && form.text !== "" ? [form.text] : []))
  return [...(notes.length === 0 ? [] : [notes.join("   ")]), ...cells.map((row) => row.join("").trimEnd())].join("\n")
}
