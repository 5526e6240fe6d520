import type { Picture, Point, Shape } from "./Picture.ts"

/** A picture as text, in the letters of whoever looks at it. */
export const svgOf = ({ wide, high, paper, shapes }: Picture): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="system-ui, sans-serif">`,
    `<rect width="${wide}" height="${high}" fill="${paper}"/>`,
    ...shapes.map(element),
    "</svg>",
    "",
  ].join("\n")

const element = (shape: Shape): string => {
  switch (shape._tag) {
    case "Text":
      return `<text x="${shape.x.toFixed(1)}" y="${shape.y.toFixed(1)}" text-anchor="${shape.anchor}" font-size="${shape.size}" fill="${shape.colour}">${escape(shape.words)}</text>`
    case "Line":
      return `<polyline points="${list(shape.points)}" fill="none" stroke="${shape.colour}" stroke-width="${shape.width}" stroke-linejoin="round"/>`
    case "Area":
      return `<polygon points="${list(shape.points)}" fill="${shape.colour}" opacity="${shape.opacity}"/>`
    case "Dots":
      return `<g fill="${shape.colour}">${shape.points.map(({ x, y }) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${shape.radius}"/>`).join("")}</g>`
  }
}

const list = (points: ReadonlyArray<Point>): string =>
  points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")

const escape = (text: string): string => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`)
