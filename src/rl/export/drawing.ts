/**
 * Describes drawings by lines, areas, dots and texts, and writes them as SVG. `pdf.ts` writes them as PDF. The page of
 * `effect ui` loads this file in the browser, so it may import only files without Node or Effect.
 */

export interface PlotPoint {
  readonly x: number
  readonly y: number
}

/** A part of a drawing; a later one covers the earlier ones. Lengths are in pixels of the screen, from the top left. */
export type PlotShape =
  | {
      readonly kind: "line"
      readonly points: ReadonlyArray<PlotPoint>
      readonly width: number
      readonly colour: string
    }
  | {
      readonly kind: "area"
      readonly points: ReadonlyArray<PlotPoint>
      readonly opacity: number
      readonly colour: string
    }
  | {
      readonly kind: "dots"
      readonly points: ReadonlyArray<PlotPoint>
      readonly radius: number
      readonly colour: string
    }
  | {
      readonly kind: "text"
      readonly at: PlotPoint
      readonly content: string
      readonly anchor: "start" | "middle" | "end"
      readonly size: number
      readonly colour: string
    }

/** Colours are written as `#rrggbb`. */
export interface PlotDrawing {
  readonly width: number
  readonly height: number
  readonly paper: string
  readonly shapes: ReadonlyArray<PlotShape>
}

/** Writes a drawing as an SVG document. With a `scale`, its size in pixels is that many times larger. */
export const svgOf = ({ width, height, paper, shapes }: PlotDrawing, scale = 1): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width * scale}" height="${height * scale}" font-family="system-ui, sans-serif">`,
    `<rect width="${width}" height="${height}" fill="${paper}"/>`,
    ...shapes.map(svgShape),
    "</svg>",
    "",
  ].join("\n")

const svgShape = (shape: PlotShape): string => {
  switch (shape.kind) {
    case "line":
      return `<polyline points="${list(shape.points)}" fill="none" stroke="${shape.colour}" stroke-width="${shape.width}" stroke-linejoin="round"/>`
    case "area":
      return `<polygon points="${list(shape.points)}" fill="${shape.colour}"${shape.opacity === 1 ? "" : ` opacity="${shape.opacity}"`}/>`
    case "dots":
      return `<g fill="${shape.colour}">${shape.points.map(({ x, y }) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${shape.radius}"/>`).join("")}</g>`
    case "text":
      return `<text x="${shape.at.x.toFixed(1)}" y="${shape.at.y.toFixed(1)}" text-anchor="${shape.anchor}" font-size="${shape.size}" fill="${shape.colour}">${escape(shape.content)}</text>`
  }
}

const list = (points: ReadonlyArray<PlotPoint>): string =>
  points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")

const escape = (content: string): string => content.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
