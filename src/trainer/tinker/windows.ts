/** Places the examples of a request into the windows of training programs. */
import type { Datum } from "./Datum.ts"

/** The size of a program: `rows` windows of `width` tokens. */
export interface WindowSize {
  readonly rows: number
  readonly width: number
}

/** An example, and its place in a batch. */
interface PlacedDatum {
  /** The index of the example in its request. */
  readonly index: number
  /** The index of its first token in the batch. */
  readonly start: number
}

/** Examples that a program computes together. */
export interface WindowBatch {
  readonly size: WindowSize
  readonly placed: ReadonlyArray<PlacedDatum>
}

/** About how many tokens a program computes at once. */
const tokensAtOnce = 1024

/**
 * Chooses the sizes of programs: widths of 32, 128, 512 and so on, up to the longest example, so that short examples are
 * not computed in long windows.
 */
export const windowSizes = (maxLength: number): ReadonlyArray<WindowSize> => {
  const widths: Array<number> = []
  for (let width = 32; width < maxLength; width *= 4) widths.push(width)
  return [...widths, maxLength].map((width) => ({ width, rows: Math.max(1, Math.floor(tokensAtOnce / width)) }))
}

/**
 * Places examples one after another into the windows of the smallest program that has room for the longest one. The batches
 * depend only on the request, so its results do not depend on other clients.
 */
export const placeData = (
  data: ReadonlyArray<Pick<Datum, "tokens">>,
  sizes: ReadonlyArray<WindowSize>,
): ReadonlyArray<WindowBatch> => {
  const longest = data.reduce((most, { tokens }) => Math.max(most, tokens.length), 0)
  const size = sizes.find(({ width }) => width >= longest) ?? sizes[sizes.length - 1]
  const { rows, width } = size
  const batches: Array<Array<PlacedDatum>> = []
  let placed: Array<PlacedDatum> = []
  let row = 0
  let used = 0
  for (const [index, { tokens }] of data.entries()) {
    if (used + tokens.length > width) {
      row++
      used = 0
    }
    if (row === rows) {
      batches.push(placed)
      placed = []
      row = 0
    }
    placed.push({ index, start: row * width + used })
    used += tokens.length
  }
  return [...batches, placed].map((all) => ({ size, placed: all }))
}
