/**
 * Draws SVG documents as pixels, as far as envs need it: shapes, paths, groups with `transform`, texts in a built-in font,
 * and PNG files in them. A document with other elements is refused, since its picture would lack them.
 */
import { Effect, Schema } from "effect"
import { cos, sin } from "../../rng/Elementary.ts"
import { arcPoints, type Cap, type Line, pathLines, rectangle, stroked, textOutlines, textWidth } from "./outlines.ts"
import {
  type Colour,
  empty,
  fill,
  type Matrix,
  mostPixels,
  type Outlines,
  type Picture,
  PictureError,
  place,
} from "./Picture.ts"
import { decodePng } from "./png.ts"

type Attributes = Readonly<Record<string, string>>

/** Elements that draw nothing themselves. */
const invisible: ReadonlySet<string> = new Set(["title", "desc", "metadata", "animate", "animateTransform", "set"])
/** Attributes that elements take over from the group that they are in. */
const inherited = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-linecap",
  "fill-rule",
  "fill-opacity",
  "stroke-opacity",
  "font-size",
  "text-anchor",
  "dominant-baseline",
  "visibility",
]

const failed = (problem: string): PictureError => new PictureError({ message: `SVG: ${problem}` })

const tags = /<!--[^]*?-->|<[?!][^>]*>|<(\/?)([\w:-]+)((?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/g

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" }
const unescaped = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) =>
    name === undefined
      ? String.fromCodePoint(Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16))
      : (entities[name] ?? whole),
  )

const attributesIn = (text: string): Attributes => {
  const pairs = Array.from(text.matchAll(/([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g), ([, name, double, single]) => [
    name,
    unescaped(double ?? single ?? ""),
  ])
  const attributes: Record<string, string> = Object.fromEntries(pairs)
  // A style overrides attributes of the same name.
  for (const one of (attributes.style ?? "").split(";")) {
    const [name, value] = one.split(":")
    if (value !== undefined) attributes[name.trim()] = value.trim()
  }
  return attributes
}

const named: Readonly<Record<string, string>> = {
  black: "#000000",
  white: "#ffffff",
  red: "#ff0000",
  green: "#008000",
  blue: "#0000ff",
  yellow: "#ffff00",
  cyan: "#00ffff",
  magenta: "#ff00ff",
  gray: "#808080",
  grey: "#808080",
  silver: "#c0c0c0",
  maroon: "#800000",
  olive: "#808000",
  lime: "#00ff00",
  aqua: "#00ffff",
  teal: "#008080",
  navy: "#000080",
  fuchsia: "#ff00ff",
  purple: "#800080",
  orange: "#ffa500",
  brown: "#a52a2a",
  pink: "#ffc0cb",
  gold: "#ffd700",
  tomato: "#ff6347",
  lightgray: "#d3d3d3",
  lightgrey: "#d3d3d3",
  darkgray: "#a9a9a9",
  darkgrey: "#a9a9a9",
  steelblue: "#4682b4",
  skyblue: "#87ceeb",
  lightblue: "#add8e6",
  darkblue: "#00008b",
  lightgreen: "#90ee90",
  darkgreen: "#006400",
  crimson: "#dc143c",
  coral: "#ff7f50",
  indigo: "#4b0082",
  violet: "#ee82ee",
  beige: "#f5f5dc",
  tan: "#d2b48c",
}

/** Returns a colour; undefined for none. Throws a PictureError for a text that is no colour. */
const colourOf = (text: string, opacity: number): Colour | undefined => {
  if (text === "none" || text === "transparent") return undefined
  const hex = named[text.toLowerCase()] ?? text
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(hex)
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})?$/i.exec(hex)
  const [, ...parts] = short ?? long ?? []
  const values = parts.filter((part) => part !== undefined).map((part) => Number.parseInt(part.padStart(2, part), 16))
  if (values.length >= 3) {
    return { rgb: [values[0], values[1], values[2]], alpha: (opacity * (values[3] ?? 255)) / 255 }
  }
  const [red, green, blue, alpha = 1] = /^rgba?\(/.test(text) ? numbersIn(text.slice(text.indexOf("("))) : []
  if (blue === undefined || text.includes("%")) {
    throw failed(`expected a colour such as #3d5a80, found ${JSON.stringify(text)}`)
  }
  return { rgb: [red, green, blue], alpha: opacity * alpha }
}

const numbersIn = (text: string): ReadonlyArray<number> =>
  Array.from(text.matchAll(/[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/g), ([digits]) => Number(digits))

const times = ([a, b, c, d, e, f]: Matrix, [g, h, i, j, k, l]: Matrix): Matrix => [
  a * g + c * h,
  b * g + d * h,
  a * i + c * j,
  b * i + d * j,
  a * k + c * l + e,
  b * k + d * l + f,
]

/** Returns the map of a `transform` such as `translate(4 2) rotate(45)`. */
const matrixOf = (transform: string): Matrix =>
  Array.from(transform.matchAll(/(\w+)\s*\(([^)]*)\)/g)).reduce<Matrix>(
    (matrix, [, kind, values]) => times(matrix, partOf(kind, numbersIn(values))),
    [1, 0, 0, 1, 0, 0],
  )

const partOf = (kind: string, values: ReadonlyArray<number>): Matrix => {
  const [a = 0, b, c, d = 0, e = 0, f = 0] = values
  if (kind === "translate") return [1, 0, 0, 1, a, b ?? 0]
  if (kind === "scale") return [a, 0, 0, b ?? a, 0, 0]
  if (kind === "matrix") return [a, b ?? 0, c ?? 0, d, e, f]
  if (kind !== "rotate") throw failed(`expected translate, scale, rotate or matrix, found ${kind}`)
  const angle = (a * Math.PI) / 180
  const turned: Matrix = [cos(angle), sin(angle), -sin(angle), cos(angle), 0, 0]
  return b === undefined ? turned : times(times([1, 0, 0, 1, b, c ?? 0], turned), [1, 0, 0, 1, -b, -(c ?? 0)])
}

const mapped = ([a, b, c, d, e, f]: Matrix, outlines: Outlines): Outlines =>
  outlines.map((points) =>
    points.map((value, at) => (at % 2 === 0 ? a * value + c * points[at + 1] + e : b * points[at - 1] + d * value + f)),
  )

/** The lines of a shape, all closed for shapes without ends; undefined for an element that is no shape. */
const linesOf = (name: string, attributes: Attributes, scale: number): ReadonlyArray<Line> | undefined => {
  const number = (key: string, otherwise = 0): number => {
    const value = attributes[key] === undefined ? otherwise : Number.parseFloat(attributes[key])
    if (!Number.isFinite(value)) throw failed(`${key} of ${name}: expected a number, found ${attributes[key]}`)
    return value
  }
  const shape = (points: ReadonlyArray<number>): ReadonlyArray<Line> => [{ points, closed: true }]
  switch (name) {
    case "rect": {
      const radii = [number("rx", number("ry")), number("ry", number("rx"))] as const
      return shape(rectangle(number("x"), number("y"), number("width"), number("height"), radii, scale))
    }
    case "circle":
      return shape(arcPoints(number("cx"), number("cy"), [number("r"), number("r")], scale))
    case "ellipse":
      return shape(arcPoints(number("cx"), number("cy"), [number("rx"), number("ry")], scale))
    case "line":
      return [{ points: [number("x1"), number("y1"), number("x2"), number("y2")], closed: false }]
    case "polyline":
      return [{ points: numbersIn(attributes.points ?? ""), closed: false }]
    case "polygon":
      return shape(numbersIn(attributes.points ?? ""))
    case "path":
      return pathLines(attributes.d ?? "", scale)
    default:
      return undefined
  }
}

/** The state in which an element is drawn: its attributes with those of its groups, its map and its opacity. */
interface Group {
  readonly name: string
  readonly attributes: Attributes
  readonly matrix: Matrix
  readonly opacity: number
  readonly isHidden: boolean
}

/** Returns the width and height of a document in pixels, and the map from its units to them. */
const frameOf = (
  attributes: Attributes,
): { readonly width: number; readonly height: number; readonly matrix: Matrix } => {
  const box = numbersIn(attributes.viewBox ?? "")
  const given = (key: string): number =>
    attributes[key]?.endsWith("%") ? NaN : Number.parseFloat(attributes[key] ?? "")
  const [boxWidth, boxHeight] = [box[2] ?? given("width"), box[3] ?? given("height")]
  const [width, height] = [Math.round(given("width") || boxWidth), Math.round(given("height") || boxHeight)]
  if (!(width > 0 && height > 0 && boxWidth > 0 && boxHeight > 0 && width * height <= mostPixels)) {
    throw failed("expected a viewBox, or a width and a height in pixels, of at most 4096 × 4096")
  }
  const scale = Math.min(width / boxWidth, height / boxHeight)
  const [left, top] = [(width - boxWidth * scale) / 2, (height - boxHeight * scale) / 2]
  return { width, height, matrix: [scale, 0, 0, scale, left - (box[0] ?? 0) * scale, top - (box[1] ?? 0) * scale] }
}

/** Draws an SVG document, with a transparent background. */
export const drawSvg = (text: string): Effect.Effect<Picture, PictureError> =>
  Effect.gen(function* () {
    let picture: Picture | undefined
    const groups: Array<Group> = []
    for (const [, closing, name, attributeText = "", alone, content] of text.matchAll(tags)) {
      const group = groups.at(-1)
      if (name === undefined) {
        const words = unescaped(content ?? "")
          .replace(/\s+/g, " ")
          .trim()
        if (words !== "" && group !== undefined && picture !== undefined) drawText(picture, words, group)
        continue
      }
      if (closing === "/") {
        groups.pop()
        continue
      }
      const own = attributesIn(attributeText)
      if (name === "svg" && picture === undefined) {
        const { width, height, matrix } = frameOf(own)
        picture = empty(width, height)
        if (alone === "") groups.push({ name, attributes: own, matrix, opacity: 1, isHidden: false })
        continue
      }
      if (group === undefined || picture === undefined)
        return yield* failed(`expected a document that begins with <svg>, found <${name}>`)
      const next: Group = {
        name,
        attributes: {
          ...Object.fromEntries(
            inherited.flatMap((key) => (key in group.attributes ? [[key, group.attributes[key]]] : [])),
          ),
          ...own,
        },
        matrix: own.transform === undefined ? group.matrix : times(group.matrix, matrixOf(own.transform)),
        opacity: group.opacity * Number(own.opacity ?? 1),
        isHidden: group.isHidden || own.display === "none" || invisible.has(name),
      }
      if (!next.isHidden && next.attributes.visibility !== "hidden") {
        if (name === "image") yield* drawImage(picture, next)
        else drawShape(picture, next)
      }
      if (alone === "") groups.push(next)
    }
    return picture ?? (yield* failed("expected a document that begins with <svg>, found another text"))
  }).pipe(Effect.catchDefect((defect) => (defect instanceof PictureError ? Effect.fail(defect) : Effect.die(defect))))

const containers: ReadonlySet<string> = new Set(["g", "svg", "text", "tspan", "a"])

const drawShape = (picture: Picture, { name, attributes, matrix, opacity }: Group): void => {
  const [a, b, c, d] = matrix
  const scale = Math.sqrt(Math.abs(a * d - b * c))
  const lines = linesOf(name, attributes, scale)
  if (lines === undefined) {
    if (containers.has(name)) return
    throw failed(`<${name}> cannot be drawn; expected shapes, paths, groups, texts and PNG files`)
  }
  const inside = colourOf(attributes.fill ?? "black", opacity * Number(attributes["fill-opacity"] ?? 1))
  if (inside !== undefined && name !== "line") {
    const rule = attributes["fill-rule"] === "evenodd" ? "evenodd" : "nonzero"
    fill(
      picture,
      mapped(
        matrix,
        lines.map(({ points }) => points),
      ),
      inside,
      rule,
    )
  }
  const outline = colourOf(attributes.stroke ?? "none", opacity * Number(attributes["stroke-opacity"] ?? 1))
  if (outline === undefined) return
  const width = Number.parseFloat(attributes["stroke-width"] ?? "1")
  const ends = attributes["stroke-linecap"]
  const cap: Cap = ends === "round" || ends === "square" ? ends : "butt"
  fill(picture, mapped(matrix, stroked(lines, width, cap, scale)), outline)
}

const drawText = (picture: Picture, words: string, { name, attributes, matrix, opacity, isHidden }: Group): void => {
  if (isHidden || (name !== "text" && name !== "tspan")) return
  const colour = colourOf(attributes.fill ?? "black", opacity * Number(attributes["fill-opacity"] ?? 1))
  if (colour === undefined) return
  const size = Number.parseFloat(attributes["font-size"] ?? "16")
  const anchor = attributes["text-anchor"]
  const share = anchor === "middle" ? 0.5 : anchor === "end" ? 1 : 0
  const x = Number.parseFloat(attributes.x ?? "0") - share * textWidth(words, size)
  const baseline = attributes["dominant-baseline"]
  const y = Number.parseFloat(attributes.y ?? "0") + (baseline === "middle" || baseline === "central" ? 0.35 * size : 0)
  fill(picture, mapped(matrix, textOutlines(words, x, y, size)), colour)
}

const fromBase64 = Schema.decodeEffect(Schema.Uint8ArrayFromBase64)

const drawImage = Effect.fnUntraced(function* (picture: Picture, { attributes, matrix, opacity }: Group) {
  const address = attributes.href ?? attributes["xlink:href"] ?? ""
  const prefix = "data:image/png;base64,"
  if (!address.startsWith(prefix))
    return yield* failed(`expected an image of ${prefix}…, found ${address.slice(0, 30)}`)
  const bytes = yield* Effect.mapError(fromBase64(address.slice(prefix.length)), () =>
    failed("expected an image in base64, found other characters"),
  )
  const image = yield* decodePng(bytes)
  const size = (key: "width" | "height"): number => Number.parseFloat(attributes[key] ?? String(image[key]))
  const [x, y] = [Number.parseFloat(attributes.x ?? "0"), Number.parseFloat(attributes.y ?? "0")]
  place(picture, image, times(matrix, [size("width"), 0, 0, size("height"), x, y]), opacity)
})
