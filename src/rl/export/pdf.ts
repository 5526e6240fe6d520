/**
 * Writes drawings as PDF files of one page, with lines and texts that stay sharp at every size. Texts are in Helvetica,
 * which every reader of PDF has; a letter that it lacks becomes a question mark. The same drawing gives the same bytes.
 */
import { utf8 } from "../../base/text/utf8.ts"
import type { PlotDrawing, PlotPoint, PlotShape } from "./drawing.ts"

/** Returns the bytes of a PDF file with a drawing. A pixel of the screen is three quarters of a point. */
export const pdfOf = ({ width, height, paper, shapes }: PlotDrawing): Uint8Array => {
  const scale = 0.75
  const opacities = [...new Set(shapes.flatMap((shape) => (shape.kind === "area" ? [shape.opacity] : [])))]
  const content = [
    // In PDF, y grows upwards, so flip the drawing.
    `${scale} 0 0 ${-scale} 0 ${scale * height} cm 1 j`,
    `${filling(paper)} 0 0 ${width} ${height} re f`,
    ...shapes.map((shape) => operatorsOf(shape, opacities)),
  ].join("\n")
  const states = opacities.map((opacity, index) => `/G${index} << /ca ${opacity} >>`).join(" ")
  return fileOf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${scale * width} ${scale * height}] /Contents 4 0 R ` +
      `/Resources << /Font << /F 5 0 R >> /ExtGState << ${states} >> >> >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
  ])
}

/** Returns a file with these objects, the first of which is its catalogue. They have only ASCII characters. */
const fileOf = (objects: ReadonlyArray<string>): Uint8Array => {
  let file = "%PDF-1.4\n"
  const starts = objects.map((object, index) => {
    const start = file.length
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(start).padStart(10, "0")} 00000 n \n`
  })
  const count = objects.length + 1
  const table = `xref\n0 ${count}\n0000000000 65535 f \n${starts.join("")}`
  return utf8.encode(`${file}${table}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`)
}

const operatorsOf = (shape: PlotShape, opacities: ReadonlyArray<number>): string => {
  switch (shape.kind) {
    case "line":
      return `${rgb(shape.colour)} RG ${shape.width} w ${path(shape.points)} S`
    case "area":
      return `q /G${opacities.indexOf(shape.opacity)} gs ${filling(shape.colour)} ${path(shape.points)} f Q`
    case "dots":
      return `${filling(shape.colour)} ${shape.points.map((point) => `${circle(point, shape.radius)} f`).join(" ")}`
    case "text": {
      const codes = Array.from(shape.content, codeOf)
      const share = shape.anchor === "start" ? 0 : shape.anchor === "middle" ? 0.5 : 1
      const x = shape.at.x - share * shape.size * codes.reduce((sum, code) => sum + widthOf(code), 0)
      const hex = codes.map((code) => code.toString(16).padStart(2, "0")).join("")
      // The negative scale flips the letters back upright.
      return `${filling(shape.colour)} BT /F ${shape.size} Tf 1 0 0 -1 ${number(x)} ${number(shape.at.y)} Tm <${hex}> Tj ET`
    }
  }
}

const number = (value: number): string => String(Number(value.toFixed(2)))
const at = ({ x, y }: PlotPoint): string => `${number(x)} ${number(y)}`
const path = (points: ReadonlyArray<PlotPoint>): string =>
  points.map((point, index) => `${at(point)} ${index === 0 ? "m" : "l"}`).join(" ")

/** Returns four Bézier curves, which differ from the circle by less than a thousandth of its radius. */
const circle = ({ x, y }: PlotPoint, radius: number): string => {
  const bend = 0.5523 * radius
  const quarter = (...points: ReadonlyArray<readonly [number, number]>): string =>
    `${points.map(([right, down]) => at({ x: x + right, y: y + down })).join(" ")} c`
  return [
    `${at({ x: x + radius, y })} m`,
    quarter([radius, bend], [bend, radius], [0, radius]),
    quarter([-bend, radius], [-radius, bend], [-radius, 0]),
    quarter([-radius, -bend], [-bend, -radius], [0, -radius]),
    quarter([bend, -radius], [radius, -bend], [radius, 0]),
  ].join(" ")
}

const rgb = (colour: string): string =>
  [1, 3, 5].map((from) => number(Number.parseInt(colour.slice(from, from + 2), 16) / 255)).join(" ")
const filling = (colour: string): string => `${rgb(colour)} rg`

/**
 * The codes of letters that Windows' encoding has at other places than Unicode. A minus becomes a dash of the same
 * width.
 */
const special: Readonly<Record<string, number>> = { "−": 0x96, "–": 0x96, "—": 0x97, "…": 0x85, "’": 0x92, "•": 0x95 }

const codeOf = (letter: string): number => {
  const code = letter.charCodeAt(0)
  const isLatin = letter.length === 1 && ((code >= 32 && code < 127) || (code >= 160 && code < 256))
  return special[letter] ?? (isLatin ? code : 63)
}

/** The widths of Helvetica's letters from the space to the tilde, in thousandths of the font size. */
const widths = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
  556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
  722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
  556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
  260, 334, 584,
]
/** Returns the width of a letter at font size 1. A letter outside ASCII counts as wide as a digit. */
const widthOf = (code: number): number => (widths[code - 32] ?? (code === 0x85 || code === 0x97 ? 1000 : 556)) / 1000
