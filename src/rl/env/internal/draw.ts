/**
 * Helps the built-in envs to render states: `canvas` makes the grid of characters for `renderText`; `svg` makes the
 * document for `renderSvg`, from elements that `stroke` and the functions below it return as text. It only computes.
 */

export interface Point {
  readonly x: number
  readonly y: number
}

/**
 * Makes an empty grid of characters that shows a world of this size, with (0, 0) in the middle and y growing upwards.
 * `put` and `line` take coordinates in the world, `write` takes a column and a row, and `text` returns the result.
 */
export const canvas = (columns: number, rows: number, world: { readonly width: number; readonly height: number }) => {
  const cells = Array.from({ length: rows }, () => Array.from({ length: columns }, () => " "))
  const put = (x: number, y: number, character: string): void => {
    const column = Math.round((x / world.width + 0.5) * (columns - 1))
    const row = Math.round((0.5 - y / world.height) * (rows - 1))
    if (cells[row]?.[column] !== undefined) cells[row][column] = character
  }
  const line = (from: Point, to: Point, character: string): void => {
    const steps = columns + rows
    for (let step = 0; step <= steps; step++) {
      const share = step / steps
      put(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share, character)
    }
  }
  const write = (column: number, row: number, text: string): void => {
    for (const [offset, character] of [...text].entries()) {
      if (cells[row]?.[column + offset] !== undefined) cells[row][column + offset] = character
    }
  }
  const text = (): string => cells.map((row) => row.join("").trimEnd()).join("\n")
  return { put, line, write, text }
}

export const palette = {
  paper: "#fbfaf7",
  ink: "#2b2d42",
  faint: "#d9d6cf",
  body: "#3d5a80",
  pole: "#ee6c4d",
  joint: "#f4d35e",
  goal: "#2a9d8f",
} as const

/** Returns a number as text, rounded to at most two decimals. */
export const short = (value: number): string => String(Math.round(value * 100) / 100)

/** Returns an SVG document of these elements, with a title for screen readers. */
export const svg = (title: string, width: number, height: number, parts: ReadonlyArray<string>): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="${palette.paper}"/>`,
    ...parts,
    "</svg>",
  ].join("\n")

export const stroke = (from: Point, to: Point, colour: string, width: number): string =>
  `<line x1="${short(from.x)}" y1="${short(from.y)}" x2="${short(to.x)}" y2="${short(to.y)}" ` +
  `stroke="${colour}" stroke-width="${width}" stroke-linecap="round"/>`

export const disc = (at: Point, radius: number, colour: string): string =>
  `<circle cx="${short(at.x)}" cy="${short(at.y)}" r="${short(radius)}" fill="${colour}"/>`

export const slab = (at: Point, width: number, height: number, colour: string): string =>
  `<rect x="${short(at.x)}" y="${short(at.y)}" width="${short(width)}" height="${short(height)}" rx="4" fill="${colour}"/>`

export const path = (points: ReadonlyArray<Point>, colour: string, width: number): string =>
  `<polyline points="${points.map(({ x, y }) => `${short(x)},${short(y)}`).join(" ")}" fill="none" ` +
  `stroke="${colour}" stroke-width="${width}" stroke-linecap="round" stroke-linejoin="round"/>`

export const caption = (text: string): string =>
  `<text x="12" y="24" font-family="ui-monospace, monospace" font-size="13" fill="${palette.ink}">${text}</text>`
