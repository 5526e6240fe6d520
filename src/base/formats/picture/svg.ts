/**
 * Draws SVG documents as pixels. It supports what envs need: shapes, paths, groups with `transform`, texts in a
 * built-in font, and embedded PNG files. A document with other elements, or with attributes such as `clip-path`, is
 * refused, since its picture would be wrong without them.
 *
 * We do not use `@resvg/resvg-wasm`: each page and edge worker that draws an episode would have to load its 2.5 MB of
 * WebAssembly, which have no font, and each of them instantiates WebAssembly in a different way.
 */
import { Effect, Schema } from "effect"
import { FormatError } from "../FormatError.ts"
import { arcPoints, type Cap, type Line, pathLines, rectangle, stroked, textOutlines, textWidth } from "./outlines.ts"
import { empty, fill, type Matrix, mostSide, type Outlines, type Picture, place } from "./Picture.ts"
import { decodePng } from "./png.ts"
import {
  type Attributes,
  colourOf,
  failed,
  matrixOf,
  numberIn,
  numbersIn,
  opacityIn,
  pointsIn,
  sizeIn,
  times,
} from "./svgValues.ts"

/** Elements that draw nothing themselves. */
const invisible: ReadonlySet<string> = new Set(["title", "desc", "metadata", "animate", "animateTransform", "set"])
/** The attributes that an element inherits from its group. */
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

/** The attributes that change a picture but are not supported here. */
const refused = [
  "clip-path",
  "mask",
  "filter",
  "stroke-dasharray",
  "marker",
  "marker-start",
  "marker-mid",
  "marker-end",
  "mix-blend-mode",
  "vector-effect",
  "baseline-shift",
  "textLength",
  "rotate",
  "writing-mode",
]

/** Matches at one place only: elsewhere, a comment without end would be searched to the end from each `<!--`. */
const tags =
  /<!--[^]*?-->|<(?:\?|!(?!--))[^>]*>|<(\/?)([\w:-]+)((?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/gy

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" }
const unescaped = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole: string, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return entities[name] ?? whole
    const code = Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16)
    if (!(code <= 0x10ffff)) throw failed(`expected a character, found ${whole.slice(0, 20)}`)
    return String.fromCodePoint(code)
  })

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

const mapped = ([a, b, c, d, e, f]: Matrix, outlines: Outlines): Outlines =>
  outlines.map((points) =>
    points.map((value, at) => (at % 2 === 0 ? a * value + c * points[at + 1] + e : b * points[at - 1] + d * value + f)),
  )

/**
 * Returns the lines of a shape; they are closed, unless the shape has ends. Undefined for an element that is not a
 * shape.
 */
const linesOf = (name: string, attributes: Attributes, scale: number): ReadonlyArray<Line> | undefined => {
  const number = (key: string): number => numberIn(attributes, name, key)
  const size = (key: string, otherwise = 0): number => sizeIn(attributes, name, key, otherwise)
  const shape = (points: ReadonlyArray<number>): ReadonlyArray<Line> => [{ points, closed: true }]
  switch (name) {
    case "rect": {
      const radii = [size("rx", size("ry")), size("ry", size("rx"))] as const
      return shape(rectangle(number("x"), number("y"), size("width"), size("height"), radii, scale))
    }
    case "circle":
      return shape(arcPoints(number("cx"), number("cy"), [size("r"), size("r")], scale))
    case "ellipse":
      return shape(arcPoints(number("cx"), number("cy"), [size("rx"), size("ry")], scale))
    case "line":
      return [{ points: [number("x1"), number("y1"), number("x2"), number("y2")], closed: false }]
    case "polyline":
      return [{ points: pointsIn(attributes, name), closed: false }]
    case "polygon":
      return shape(pointsIn(attributes, name))
    case "path":
      return pathLines(attributes.d ?? "", scale)
    default:
      return undefined
  }
}

/** The state for drawing an element: its attributes with the inherited ones, its transform and its opacity. */
interface Group {
  readonly name: string
  readonly attributes: Attributes
  readonly matrix: Matrix
  readonly opacity: number
  readonly isHidden: boolean
  /** The position of the next letter of a text; undefined outside of texts. */
  readonly pen: Pen | undefined
}

interface Pen {
  x: number
  y: number
  /** Whether letters were already written with this pen, and whether a space must precede the next ones. */
  isUsed: boolean
  hasSpace: boolean
}

/** Returns the width and height of a document in pixels, and the transform from its units to pixels. */
const frameOf = (
  attributes: Attributes,
): { readonly width: number; readonly height: number; readonly matrix: Matrix } => {
  const box = numbersIn(attributes.viewBox ?? "", "viewBox of svg")
  const given = (key: string): number => (attributes[key]?.endsWith("%") ? NaN : numberIn(attributes, "svg", key, NaN))
  const [boxWidth, boxHeight] = [box[2] ?? given("width"), box[3] ?? given("height")]
  const [width, height] = [Math.round(given("width") || boxWidth), Math.round(given("height") || boxHeight)]
  if (!(width > 0 && height > 0 && boxWidth > 0 && boxHeight > 0 && Math.max(width, height) <= mostSide)) {
    throw failed(`expected a viewBox, or a width and a height in pixels, of at most ${mostSide} × ${mostSide}`)
  }
  const scale = Math.min(width / boxWidth, height / boxHeight)
  const [left, top] = [(width - boxWidth * scale) / 2, (height - boxHeight * scale) / 2]
  return { width, height, matrix: [scale, 0, 0, scale, left - (box[0] ?? 0) * scale, top - (box[1] ?? 0) * scale] }
}

/** Draws an SVG document, with a transparent background. */
export const drawSvg = (text: string): Effect.Effect<Picture, FormatError> =>
  Effect.gen(function* () {
    let picture: Picture | undefined
    const groups: Array<Group> = []
    let end = 0
    for (const match of text.matchAll(tags)) {
      const [whole, closing, name, attributeText = "", alone, content] = match
      if (match.index !== end || whole.startsWith("<![")) return yield* unreadable(text, end)
      end += whole.length
      const group = groups.at(-1)
      if (name === undefined) {
        const words = unescaped(content ?? "").replace(/\s+/g, " ")
        if (words !== "" && group !== undefined && picture !== undefined) drawText(picture, words, group)
        continue
      }
      if (closing === "/") {
        const opened = groups.pop()?.name
        if (opened !== name) return yield* failed(`expected </${opened ?? "svg"}>, found </${name}>`)
        continue
      }
      const own = attributesIn(attributeText)
      if (name === "svg" && picture === undefined) {
        const { width, height, matrix } = frameOf(own)
        picture = empty(width, height)
        if (alone === "") groups.push({ name, attributes: own, matrix, opacity: 1, isHidden: false, pen: undefined })
        continue
      }
      if (group === undefined || picture === undefined)
        return yield* failed(`expected a document that begins with <svg>, found <${name}>`)
      const unsupported = refused.find((key) => own[key] !== undefined && own[key] !== "none")
      if (unsupported !== undefined) return yield* failed(`${unsupported} of ${name} is not supported`)
      if (name === "svg" && ["x", "y", "viewBox"].some((key) => key in own)) {
        return yield* failed("expected one <svg>, found one with its own place in another")
      }
      const next: Group = {
        name,
        pen: penIn(name, own, group),
        attributes: {
          ...Object.fromEntries(
            inherited.flatMap((key) => (key in group.attributes ? [[key, group.attributes[key]]] : [])),
          ),
          ...own,
        },
        matrix: own.transform === undefined ? group.matrix : times(group.matrix, matrixOf(own.transform)),
        opacity: group.opacity * opacityIn(own, name, "opacity"),
        isHidden: group.isHidden || own.display === "none" || invisible.has(name),
      }
      if (isVisible(next)) {
        if (name === "image") yield* drawImage(picture, next)
        else drawShape(picture, next)
      }
      if (alone === "") groups.push(next)
    }
    if (end < text.length) return yield* unreadable(text, end)
    if (groups.length > 0) return yield* failed(`expected </${groups[groups.length - 1].name}>, found the end`)
    return picture ?? (yield* failed("expected a document that begins with <svg>, found another text"))
  }).pipe(Effect.catchDefect((defect) => (defect instanceof FormatError ? Effect.fail(defect) : Effect.die(defect))))

const unreadable = (text: string, at: number): FormatError =>
  failed(`expected a tag such as <rect width="2"/>, found ${JSON.stringify(text.slice(at, at + 40))}`)

const isVisible = ({ isHidden, attributes }: Group): boolean =>
  !isHidden && attributes.visibility !== "hidden" && attributes.visibility !== "collapse"

/**
 * Returns the pen for an element's letters: a text has its own position, and a part of a text continues at the text's
 * pen.
 */
const penIn = (name: string, own: Attributes, group: Group): Pen | undefined => {
  if (name !== "text" && name !== "tspan") return group.pen
  const pen = name === "tspan" ? group.pen : { x: 0, y: 0, isUsed: false, hasSpace: false }
  if (pen === undefined) throw failed("expected <tspan> in a <text>")
  const moved = (key: "x" | "y"): number => numberIn(own, name, key, pen[key]) + numberIn(own, name, `d${key}`)
  const [x, y] = [moved("x"), moved("y")]
  if (own.x !== undefined) {
    pen.isUsed = false
    pen.hasSpace = false
  }
  pen.x = x
  pen.y = y
  return pen
}

const containers: ReadonlySet<string> = new Set(["g", "svg", "text", "tspan", "a"])

const drawShape = (picture: Picture, { name, attributes, matrix, opacity }: Group): void => {
  const [a, b, c, d] = matrix
  const scale = Math.sqrt(Math.abs(a * d - b * c))
  const lines = linesOf(name, attributes, scale)
  if (lines === undefined) {
    if (containers.has(name)) return
    throw failed(`<${name}> cannot be drawn; expected shapes, paths, groups, texts and PNG files`)
  }
  const inside = colourOf(attributes.fill ?? "black", opacity * opacityIn(attributes, name, "fill-opacity"))
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
  const outline = colourOf(attributes.stroke ?? "none", opacity * opacityIn(attributes, name, "stroke-opacity"))
  if (outline === undefined) return
  const width = sizeIn(attributes, name, "stroke-width", 1)
  const ends = attributes["stroke-linecap"]
  const cap: Cap = ends === "round" || ends === "square" ? ends : "butt"
  fill(picture, mapped(matrix, stroked(lines, width, cap, scale)), outline)
}

/** Writes letters at the pen's position. Spaces at the beginning of a text are left out. */
const drawText = (picture: Picture, letters: string, group: Group): void => {
  const { name, attributes, matrix, opacity, pen } = group
  if (pen === undefined) return
  const begins = pen.isUsed && (pen.hasSpace || letters.startsWith(" "))
  const words = `${begins ? " " : ""}${letters.trim()}`
  if (words.trim() === "") {
    pen.hasSpace = begins
    return
  }
  const anchor = attributes["text-anchor"] ?? "start"
  if (anchor !== "start" && pen.isUsed) {
    throw failed(`text-anchor of ${name}: expected start for a text of several parts, found ${anchor}`)
  }
  const size = sizeIn(attributes, name, "font-size", 16)
  const share = anchor === "middle" ? 0.5 : anchor === "end" ? 1 : 0
  const width = textWidth(words, size)
  const x = pen.x - share * width
  pen.x += width
  pen.isUsed = true
  pen.hasSpace = letters.endsWith(" ")
  const baseline = attributes["dominant-baseline"]
  const y = pen.y + (baseline === "middle" || baseline === "central" ? 0.35 * size : 0)
  const colour = colourOf(attributes.fill ?? "black", opacity * opacityIn(attributes, name, "fill-opacity"))
  if (colour !== undefined && isVisible(group)) fill(picture, mapped(matrix, textOutlines(words, x, y, size)), colour)
}

const fromBase64 = Schema.decodeEffect(Schema.Uint8ArrayFromBase64)

const drawImage = Effect.fnUntraced(function* (picture: Picture, { name, attributes, matrix, opacity }: Group) {
  const address = attributes.href ?? attributes["xlink:href"] ?? ""
  const prefix = "data:image/png;base64,"
  if (!address.startsWith(prefix))
    return yield* failed(`expected an image of ${prefix}…, found ${address.slice(0, 30)}`)
  const bytes = yield* Effect.mapError(fromBase64(address.slice(prefix.length)), () =>
    failed("expected an image in base64, found other characters"),
  )
  const image = yield* decodePng(bytes)
  const size = (key: "width" | "height"): number => sizeIn(attributes, name, key, image[key])
  const [x, y] = [numberIn(attributes, name, "x"), numberIn(attributes, name, "y")]
  place(picture, image, times(matrix, [size("width"), 0, 0, size("height"), x, y]), opacity)
})
