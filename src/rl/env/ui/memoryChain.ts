/** Draws the bits of a memory task, covered unless they are shown, the time that is left, and the bit that is asked for. */
import type { EnvDrawing } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const memoryChain: EnvDrawing<{ readonly length: number; readonly bits: number }> = {
  width: 440,
  height: 260,
  terminal: { columns: 41, rows: 3, from: [20, 40], to: [420, 140] },
  source: { draw: pageText.memoryChain },
  draw: (stage, [taken, asked, ...values], [action], { length, bits, width }) => {
    const { colours, slab, disc, ring, words, letter, line, keys, faded } = stage
    const time = Math.max(0, taken - 1)
    const isShowing = time === 0
    const isAsking = time === length - 1
    const perRow = Math.min(bits, 20)
    const rows = Math.ceil(bits / perRow)
    const cell = Math.min(64, 400 / perRow, 120 / rows)
    values.forEach((value, index) => {
      const [row, column] = [Math.floor(index / perRow), index % perRow]
      const x = width / 2 + (column - (perRow - 1) / 2) * cell
      const y = 96 + (row - (rows - 1) / 2) * cell
      if (isShowing && value === 1) disc(x, y, 0.36 * cell, colours.goal)
      if (isShowing && value === 0) ring(x, y, 0.3 * cell, colours.pole, 0.12 * cell)
      if (!isShowing)
        faded(0.6, () => slab(x - 0.4 * cell, y - 0.4 * cell, 0.8 * cell, 0.8 * cell, 0.15 * cell, colours.faint))
      const shown = value === 1 ? "●" : "○"
      letter(isShowing ? shown : "▒", [x, y])
      if (!isAsking || index !== asked) return
      line(colours.act, 4, [x - 0.44 * cell, y + 0.5 * cell], [x + 0.44 * cell, y + 0.5 * cell])
      letter("?", [x, y])
    })
    const left = Math.max(0, 1 - time / length)
    slab(20, 190, 400, 10, 5, colours.faint)
    if (left > 0) slab(20, 190, 400 * left, 10, 5, colours.body)
    words(isAsking ? "which value had this bit?" : `time left ${Math.round(100 * left)} %`, 20, 24)
    keys(width / 2, 228, action, 40, [-0.6, 0], [0.6, 0])
  },
}
