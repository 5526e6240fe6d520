/**
 * Holds pictures as pixels in memory, with the operations that `svg.ts` draws with: filling shapes with a colour, and
 * placing a picture in another one. Edges are smooth. The result has the same bits on every machine: it is computed
 * with +, −, ×, ÷ and rounding only.
 */
/** Pixels in rows from the top left, each with red, green, blue and opacity from 0 to 255. */
export interface Picture {
  readonly width: number
  readonly height: number
  readonly rgba: Uint8ClampedArray
}

/** The outlines of a shape: closed polygons, each as x and y in turn. */
export type Outlines = ReadonlyArray<ReadonlyArray<number>>

/** A colour with its red, green and blue from 0 to 255, and its opacity from 0 to 1. */
export interface Colour {
  readonly rgb: readonly [red: number, green: number, blue: number]
  readonly alpha: number
}

/** An affine map: (x, y) becomes (a x + c y + e, b x + d y + f). */
export type Matrix = readonly [a: number, b: number, c: number, d: number, e: number, f: number]

/** The longest side of a picture that we draw, in pixels. */
export const mostSide = 4096

/** The largest number of pixels in a picture: 4096 × 4096. */
export const mostPixels = mostSide * mostSide

/** Makes a picture in which all pixels are transparent. */
export const empty = (width: number, height: number): Picture => ({
  width,
  height,
  rgba: new Uint8ClampedArray(4 * width * height),
})

/** Each row of pixels is sampled at this many heights; between left and right, the covered share is exact. */
const samples = 4

/** Draws a colour over the colour that a pixel has. `cover` is the covered share of the pixel, times the opacity. */
const blend = (rgba: Uint8ClampedArray, at: number, [red, green, blue]: Colour["rgb"], cover: number): void => {
  if (cover === 1) {
    rgba[at] = red
    rgba[at + 1] = green
    rgba[at + 2] = blue
    rgba[at + 3] = 255
    return
  }
  const below = (rgba[at + 3] / 255) * (1 - cover)
  const alpha = cover + below
  if (alpha === 0) return
  rgba[at] = (red * cover + rgba[at] * below) / alpha
  rgba[at + 1] = (green * cover + rgba[at + 1] * below) / alpha
  rgba[at + 2] = (blue * cover + rgba[at + 2] * below) / alpha
  rgba[at + 3] = 255 * alpha
}

/** An edge of an outline that is not horizontal, from its upper to its lower end. */
interface Edge {
  readonly top: number
  readonly bottom: number
  readonly x: number
  readonly slope: number
  readonly way: 1 | -1
}

const edgesOf = (outlines: Outlines): ReadonlyArray<Edge> =>
  outlines.flatMap((points) => {
    const edges: Array<Edge> = []
    for (let at = 0; at < points.length; at += 2) {
      const next = (at + 2) % points.length
      const [x0, y0, x1, y1] = [points[at], points[at + 1], points[next], points[next + 1]]
      if (y0 === y1) continue
      const slope = (x1 - x0) / (y1 - y0)
      edges.push(
        y0 < y1 ? { top: y0, bottom: y1, x: x0, slope, way: 1 } : { top: y1, bottom: y0, x: x1, slope, way: -1 },
      )
    }
    return edges
  })

/** Returns the first column that outlines can cover, and the one after the last. */
const columnsOf = (outlines: Outlines, width: number): readonly [first: number, last: number] => {
  let [left, right] = [Infinity, -Infinity]
  for (const points of outlines) {
    for (let at = 0; at < points.length; at += 2) {
      left = Math.min(left, points[at])
      right = Math.max(right, points[at])
    }
  }
  return [Math.min(width, Math.max(0, Math.floor(left))), Math.max(0, Math.min(width, Math.ceil(right) + 1))]
}

/** Adds the share of each pixel that lies between `from` and `to` in a row. */
const addSpan = (cover: Float64Array, from: number, to: number): void => {
  const [left, right] = [Math.max(from, 0), Math.min(to, cover.length)]
  if (!(left < right)) return
  const [first, last] = [Math.floor(left), Math.min(Math.floor(right), cover.length - 1)]
  if (first === last) {
    cover[first] += right - left
    return
  }
  cover[first] += first + 1 - left
  for (let at = first + 1; at < last; at++) cover[at]++
  cover[last] += right - last
}

/**
 * Fills a shape. A point is inside if the outlines wind around it: for `nonzero`, if the turns in one direction exceed
 * those in the other; for `evenodd`, if the number of turns is odd.
 */
export const fill = (
  picture: Picture,
  outlines: Outlines,
  colour: Colour,
  rule: "nonzero" | "evenodd" = "nonzero",
): void => {
  const { width, height, rgba } = picture
  const { rgb, alpha } = colour
  const edges = edgesOf(outlines)
  if (edges.length === 0 || alpha <= 0) return
  const highest = edges.reduce((least, { top }) => Math.min(least, top), Infinity)
  const lowest = edges.reduce((most, { bottom }) => Math.max(most, bottom), -Infinity)
  const cover = new Float64Array(width)
  const [first, last] = columnsOf(outlines, width)
  const end = Math.min(height, Math.ceil(lowest))
  for (let row = Math.max(0, Math.floor(highest)); row < end; row++) {
    const spans = spansOf(edges, row, rule)
    // Within these columns every sample is covered, so only the columns to the left and right need their shares.
    const [from, to] = spans.length === 2 * samples ? whollyCovered(spans, width) : [first, first]
    cover.fill(0, first, last)
    for (let at = 0; at < spans.length; at += 2) {
      addSpan(cover, spans[at], from === to ? spans[at + 1] : from)
      if (from !== to) addSpan(cover, to, spans[at + 1])
    }
    blendCovered(picture, row, first, from === to ? last : from, cover, colour)
    if (from === to) continue
    blendCovered(picture, row, to, last, cover, colour)
    const start = 4 * row * width
    if (alpha < 1) for (let at = start + 4 * from; at < start + 4 * to; at += 4) blend(rgba, at, rgb, alpha)
    else {
      blend(rgba, start + 4 * from, rgb, 1)
      // Each copy doubles the filled part, which is much faster than copying pixel by pixel.
      for (let size = 1; size < to - from; size *= 2) {
        const count = Math.min(size, to - from - size)
        rgba.copyWithin(start + 4 * (from + size), start + 4 * from, start + 4 * (from + count))
      }
    }
  }
}

/** Blends a colour into the columns of a row by how much of each is covered; `cover` holds sums over the samples. */
const blendCovered = (
  { width, rgba }: Picture,
  row: number,
  first: number,
  last: number,
  cover: Float64Array,
  { rgb, alpha }: Colour,
): void => {
  for (let column = first; column < last; column++) {
    if (cover[column] > 0) blend(rgba, 4 * (row * width + column), rgb, Math.min(1, cover[column] / samples) * alpha)
  }
}

/** Returns the ends of the covered spans, at each of the heights at which a row is sampled. */
const spansOf = (edges: ReadonlyArray<Edge>, row: number, rule: "nonzero" | "evenodd"): ReadonlyArray<number> => {
  const near = edges.filter(({ top, bottom }) => top < row + 1 && bottom > row)
  const spans: Array<number> = []
  for (let sample = 0; sample < samples; sample++) {
    const y = row + (sample + 0.5) / samples
    const crossings = near
      .filter(({ top, bottom }) => top <= y && y < bottom)
      .map(({ top, x, slope, way }) => ({ x: x + (y - top) * slope, way }))
      .sort((one, other) => one.x - other.x)
    let turns = 0
    for (let at = 0; at + 1 < crossings.length; at++) {
      turns += crossings[at].way
      const isInside = rule === "evenodd" ? at % 2 === 0 : turns !== 0
      if (isInside) spans.push(crossings[at].x, crossings[at + 1].x)
    }
  }
  return spans
}

/**
 * Returns the first column that all spans cover completely, and the one after the last; two equal numbers if there is
 * none.
 */
const whollyCovered = (spans: ReadonlyArray<number>, width: number): readonly [from: number, to: number] => {
  let [from, to] = [0, width]
  for (let at = 0; at < spans.length; at += 2) {
    from = Math.max(from, Math.ceil(spans[at]))
    to = Math.min(to, Math.floor(spans[at + 1]))
  }
  return from < to ? [from, to] : [0, 0]
}

/**
 * Places a picture on another one. `matrix` maps the unit square to the place where the picture goes. Each pixel takes
 * the nearest pixel of the picture.
 */
export const place = (on: Picture, picture: Picture, [a, b, c, d, e, f]: Matrix, alpha = 1): void => {
  const determinant = a * d - b * c
  if (determinant === 0) return
  const rgb: [number, number, number] = [0, 0, 0]
  for (let row = 0; row < on.height; row++) {
    for (let column = 0; column < on.width; column++) {
      const [x, y] = [column + 0.5 - e, row + 0.5 - f]
      const across = (d * x - c * y) / determinant
      const down = (a * y - b * x) / determinant
      if (!(across >= 0 && across < 1 && down >= 0 && down < 1)) continue
      const from = 4 * (Math.floor(down * picture.height) * picture.width + Math.floor(across * picture.width))
      rgb[0] = picture.rgba[from]
      rgb[1] = picture.rgba[from + 1]
      rgb[2] = picture.rgba[from + 2]
      blend(on.rgba, 4 * (row * on.width + column), rgb, (picture.rgba[from + 3] / 255) * alpha)
    }
  }
}
