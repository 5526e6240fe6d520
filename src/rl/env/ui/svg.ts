/** Turns shapes into an SVG document. */
import { light } from "./palettes.ts"
import type { StageShape } from "./shapes.ts"

/** Returns a number as text, rounded to at most three decimals. */
const short = (value: number): string => String(Math.round(value * 1000) / 1000)

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const anchors = { left: "start", center: "middle", right: "end" } as const

const elementOf = ({ form, colour, width, opacity, matrix }: StageShape): string => {
  const line = `fill="none" stroke="${colour}" stroke-width="${width}" stroke-linecap="round" stroke-linejoin="round"`
  const isMoved = matrix.some((value, index) => value !== (index === 0 || index === 3 ? 1 : 0))
  const style = [
    width === undefined ? `fill="${colour}"` : line,
    ...(opacity < 1 ? [`opacity="${short(opacity)}"`] : []),
    ...(isMoved ? [`transform="matrix(${matrix.map(short).join(" ")})"`] : []),
  ].join(" ")
  switch (form.kind) {
    case "path": {
      const points = form.points.map((point) => point.map(short).join(",")).join(" ")
      return `<${form.closed ? "polygon" : "polyline"} points="${points}" ${style}/>`
    }
    case "ellipse": {
      const [[x, y], [wide, high]] = [form.at, form.radii]
      return `<ellipse cx="${short(x)}" cy="${short(y)}" rx="${short(wide)}" ry="${short(high)}" ${style}/>`
    }
    case "rect": {
      const [[x, y], [wide, high]] = [form.at, form.size]
      const corners = form.radius === 0 ? "" : ` rx="${short(form.radius)}"`
      return `<rect x="${short(x)}" y="${short(y)}" width="${short(wide)}" height="${short(high)}"${corners} ${style}/>`
    }
    case "words": {
      const [x, y] = form.at
      const font = `font-family="ui-monospace, monospace" font-size="${form.size}" text-anchor="${anchors[form.align]}"`
      return `<text x="${short(x)}" y="${short(y)}" ${font} dominant-baseline="middle" ${style}>${escaped(form.text)}</text>`
    }
    case "letter":
    case "note":
      return ""
  }
}

/** Returns a document of these shapes, with a title for screen readers. */
export const documentOf = (
  title: string,
  { width, height }: { readonly width: number; readonly height: number },
  shapes: ReadonlyArray<StageShape>,
): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${light.paper}"/>`,
    ...shapes.map(elementOf).filter((element) => element !== ""),
    "</svg>",
  ].join("\n")
