/** Draws the pictures of a movie, of which each may have tiles for several episodes, in a size of choice. */
import { Effect } from "effect"
import { FormatError } from "../FormatError.ts"
import type { Frame } from "./frames.ts"
import { empty, type Picture } from "./Picture.ts"
import { drawSvg } from "./svg.ts"

/** Matches the first tag of a document, and its attributes. */
const root = /<svg\b([^>]*)>/

/** Returns the document with a width and a height, of which the longer is `side` pixels, if it says its size in any way. */
const fitted = (svg: string, side: number): string => {
  const [, attributes = ""] = root.exec(svg) ?? []
  const given = (name: string): string => new RegExp(`\\s${name}="([^"]*)"`).exec(attributes)?.[1] ?? ""
  const box = given("viewBox")
  const [width, height] =
    box === ""
      ? [Number.parseFloat(given("width")), Number.parseFloat(given("height"))]
      : box.trim().split(/[\s,]+/).slice(2).map(Number) // prettier-ignore
  if (!(width > 0 && height > 0)) return svg
  const scale = side / Math.max(width, height)
  const [wide, high] = [width, height].map((length) => Math.max(1, Math.round(length * scale)))
  const rest = attributes.replace(/\s(?:width|height|viewBox)="[^"]*"/g, "")
  const shown = box === "" ? `0 0 ${width} ${height}` : box
  return svg.replace(root, () => `<svg${rest} viewBox="${shown}" width="${wide}" height="${high}">`)
}

/** Draws a picture of a movie, whose longer side is at most `side` pixels if that is given. */
export const drawFrame = (frame: Frame, side?: number): Effect.Effect<Picture, FormatError> => {
  if (typeof frame === "string") return drawSvg(side === undefined ? frame : fitted(frame, side))
  return frame.length === 1 ? drawFrame(frame[0], side) : drawTiles(frame, side)
}

const drawTiles = Effect.fnUntraced(function* (
  documents: ReadonlyArray<string>,
  side: number | undefined,
): Effect.fn.Return<Picture, FormatError> {
  const columns = Math.ceil(Math.sqrt(documents.length))
  const rows = Math.ceil(documents.length / columns)
  const tileSide = side === undefined ? undefined : Math.max(1, Math.floor(side / columns))
  let all: Picture | undefined
  let size: Pick<Picture, "width" | "height"> = { width: 0, height: 0 }
  for (const [index, svg] of documents.entries()) {
    const tile = yield* drawFrame(svg, tileSide)
    const { width, height } = tile
    if (all === undefined) {
      size = { width, height }
      all = empty(columns * width, rows * height)
    }
    if (width !== size.width || height !== size.height) {
      const message = `expected tiles of one size, ${size.width} × ${size.height}, found one of ${width} × ${height}`
      return yield* new FormatError({ message })
    }
    const [row, column] = [Math.floor(index / columns), index % columns]
    for (let line = 0; line < height; line++) {
      const from = tile.rgba.subarray(4 * line * width, 4 * (line + 1) * width)
      all.rgba.set(from, 4 * ((row * height + line) * all.width + column * width))
    }
  }
  return all ?? (yield* new FormatError({ message: "expected pictures, found none" }))
})
