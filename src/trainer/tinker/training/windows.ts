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

/** About how many tokens a program computes at once: the sizes of programs for small, middling and large requests. */
const tokensAtOnce = [256, 512, 1024]

/**
 * Chooses the sizes of programs: widths of 32, 128, 512 and so on, up to the longest example, so that short examples are
 * not computed in long windows. Each width has programs of few and of many windows, so that a small request does not pay for empty
 * windows. Of a width, the program with fewer windows comes first.
 */
export const windowSizes = (maxLength: number): ReadonlyArray<WindowSize> => {
  const widths: Array<number> = []
  for (let width = 32; width < maxLength; width *= 4) widths.push(width)
  return [...widths, maxLength].flatMap((width) => {
    const rows = new Set(tokensAtOnce.map((tokens) => Math.max(1, Math.floor(tokens / width))))
    return Array.from(rows, (rows) => ({ width, rows }))
  })
}

/**
 * Places examples one after another into windows of the smallest width that has room for the longest one, and divides the windows
 * into batches: as many as possible of the largest program, and the rest in the smallest one that has room. The batches depend
 * only on the request, so its results do not depend on other clients.
 */
export const placeData = (
  data: ReadonlyArray<Pick<Datum, "tokens">>,
  sizes: ReadonlyArray<WindowSize>,
): ReadonlyArray<WindowBatch> => {
  const longest = data.reduce((most, { tokens }) => Math.max(most, tokens.length), 0)
  const { width } = sizes.find((size) => size.width >= longest) ?? sizes[sizes.length - 1]
  const ofWidth = sizes.filter((size) => size.width === width)
  const largest = ofWidth[ofWidth.length - 1]
  const batches: Array<Array<PlacedDatum>> = [[]]
  let row = 0
  let used = 0
  for (const [index, { tokens }] of data.entries()) {
    if (used + tokens.length > width) {
      row++
      used = 0
    }
    if (row === largest.rows) {
      batches.push([])
      row = 0
    }
    batches[batches.length - 1].push({ index, start: row * width + used })
    used += tokens.length
  }
  const last = ofWidth.find(({ rows }) => rows > row) ?? largest
  return batches.map((placed, at) => ({ size: at === batches.length - 1 ? last : largest, placed }))
}
