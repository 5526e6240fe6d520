/** Makes the outlines of ellipses, paths, texts, and lines that have a width. It only computes. */
import { FormatError } from "../FormatError.ts"
import { cos, sin } from "../../rng/Elementary.ts"
import type { Outlines } from "./Picture.ts"
import { glyphs, glyphWidth } from "./letters.ts"

const turn = 2 * Math.PI
const quarter = turn / 4

/** Returns how many straight parts a full circle of this radius in pixels needs to look round. */
const partsOf = (radius: number): number =>
  Math.min(400, Math.max(12, Math.ceil(8 * Math.sqrt(Math.max(1, radius)) + 8)))

/** Returns the points of an arc of an ellipse. `scale` is the number of pixels of one unit. */
export const arcPoints = (
  x: number,
  y: number,
  [rx, ry]: readonly [number, number],
  scale: number,
  from = 0,
  by = turn,
): Array<number> => {
  const parts = Math.max(1, Math.ceil((partsOf(Math.max(rx, ry) * scale) * Math.abs(by)) / turn))
  return Array.from({ length: parts + 1 }, (_, part) => from + (by * part) / parts).flatMap((angle) => [
    x + rx * cos(angle),
    y + ry * sin(angle),
  ])
}

/** Returns a rectangle whose corners are rounded by the radii. */
export const rectangle = (
  x: number,
  y: number,
  width: number,
  height: number,
  [rx, ry]: readonly [number, number],
  scale: number,
): Array<number> => {
  const radii = [Math.min(rx, width / 2), Math.min(ry, height / 2)] as const
  if (radii[0] <= 0 || radii[1] <= 0) return [x, y, x + width, y, x + width, y + height, x, y + height]
  const [left, right, top, bottom] = [x + radii[0], x + width - radii[0], y + radii[1], y + height - radii[1]]
  return [
    ...arcPoints(right, top, radii, scale, -quarter, quarter),
    ...arcPoints(right, bottom, radii, scale, 0, quarter),
    ...arcPoints(left, bottom, radii, scale, quarter, quarter),
    ...arcPoints(left, top, radii, scale, 2 * quarter, quarter),
  ]
}

/** A line of straight parts, as x and y in turn; a closed one ends where it begins. */
export interface Line {
  readonly points: ReadonlyArray<number>
  readonly closed: boolean
}

export type Cap = "butt" | "round" | "square"

/** Returns the outlines of lines with a width. Corners are round. All outlines turn the same way, so that they add up. */
export const stroked = (lines: ReadonlyArray<Line>, width: number, cap: Cap, scale: number): Outlines =>
  lines.flatMap(({ points, closed }) => {
    const half = width / 2
    const outlines: Array<ReadonlyArray<number>> = []
    const round = (at: number): void => void outlines.push(arcPoints(points[at], points[at + 1], [half, half], scale))
    const parts = points.length / 2 - (closed ? 0 : 1)
    for (let part = 0; part < parts; part++) {
      const [from, to] = [2 * part, (2 * part + 2) % points.length]
      const [x0, y0, x1, y1] = [points[from], points[from + 1], points[to], points[to + 1]]
      const length = Math.sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0))
      if (length === 0) continue
      const [dx, dy] = [((x1 - x0) / length) * half, ((y1 - y0) / length) * half]
      const [before, after] = cap === "square" && !closed ? [part === 0 ? 1 : 0, part === parts - 1 ? 1 : 0] : [0, 0]
      outlines.push([
        x0 - dx * before - dy,
        y0 - dy * before + dx,
        x0 - dx * before + dy,
        y0 - dy * before - dx,
        x1 + dx * after + dy,
        y1 + dy * after - dx,
        x1 + dx * after - dy,
        y1 + dy * after + dx,
      ])
      if (part > 0 || closed) round(from)
    }
    if (cap === "round" && !closed && points.length > 0) {
      round(0)
      round(points.length - 2)
    }
    return outlines
  })

/** Returns the outlines of a text that begins at (x, y), the left end of its base line, and the width of the text. */
export const textOutlines = (text: string, x: number, y: number, size: number): Outlines => {
  const dot = size / 10
  return Array.from(text).flatMap((letter, index) => {
    const columns = glyphs(letter)
    const left = x + index * glyphWidth * dot
    return Array.from(columns).flatMap((bits, column) =>
      Array.from({ length: 8 }, (_, row) => row)
        .filter((row) => ((bits >> row) & 1) === 1)
        .map((row) => rectangle(left + column * dot, y + (row - 7) * dot, dot, dot, [0, 0], 1)),
    )
  })
}

export const textWidth = (text: string, size: number): number => (Array.from(text).length * glyphWidth * size) / 10

const part = /[\s,]*(?:(?<command>[MmLlHhVvCcSsQqTtAaZz])|(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))/y
/** The flags of an arc are single digits, after which the next number may follow without a space. */
const flag = /[\s,]*(?<number>[01])/y
const takes: Readonly<Record<string, number>> = { M: 2, L: 2, H: 1, V: 1, C: 6, S: 4, Q: 4, T: 2, A: 7, Z: 0 }

/** A pen that draws a path. */
interface Pen {
  /** The number of pixels of one unit, which decides how many straight parts a curve needs. */
  readonly scale: number
  readonly lines: Array<{ points: Array<number>; closed: boolean }>
  /** The position of the pen, and the position where its current line began. */
  x: number
  y: number
  startX: number
  startY: number
  /** The last control point of a curve and the kind of that curve, for commands that continue it smoothly. */
  controlX: number
  controlY: number
  lastCurve: string
}

/** Returns the lines of a path in SVG's language (`M 0 0 L 10 0 Z`), with its curves as straight parts. */
export const pathLines = (path: string, scale: number): ReadonlyArray<Line> => {
  const pen: Pen = { scale, lines: [], x: 0, y: 0, startX: 0, startY: 0, controlX: 0, controlY: 0, lastCurve: "" }
  let letter = ""
  let values: Array<number> = []
  const length = path.trimEnd().length
  for (let at = 0; at < length;) {
    const isFlag = letter.toUpperCase() === "A" && (values.length === 3 || values.length === 4)
    const pattern = isFlag ? flag : part
    pattern.lastIndex = at
    const { command, number } = pattern.exec(path)?.groups ?? {}
    const isInPlace =
      command === undefined ? takes[letter.toUpperCase()] > 0 : values.length === 0 && (at > 0 || /m/i.test(command))
    if ((command === undefined && number === undefined) || !isInPlace) {
      throw new FormatError({ message: `SVG: expected a path, found ${JSON.stringify(path.slice(at, at + 20))} in d` })
    }
    at = pattern.lastIndex
    if (command !== undefined) {
      letter = command
      if (takes[letter.toUpperCase()] === 0) draw(pen, letter, [])
      continue
    }
    values.push(Number(number))
    if (values.length !== takes[letter.toUpperCase()]) continue
    draw(pen, letter, values)
    values = []
    // Further points after a move are the ends of lines.
    if (letter === "M") letter = "L"
    if (letter === "m") letter = "l"
  }
  if (values.length > 0) throw new FormatError({ message: "SVG: expected a path, found one that is cut off" })
  return pen.lines
}

/** Returns the points of the current line. If the last line was closed, begins a new one. */
const openLine = ({ lines, x, y }: Pen): Array<number> => {
  const last = lines.at(-1)
  if (last !== undefined && !last.closed) return last.points
  const points = [x, y]
  lines.push({ points, closed: false })
  return points
}

const lineTo = (pen: Pen, x: number, y: number): void => {
  openLine(pen).push(x, y)
  pen.x = x
  pen.y = y
}

const cubic = (pen: Pen, x1: number, y1: number, x2: number, y2: number, x3: number, y3: number): void => {
  const { x: x0, y: y0 } = pen
  const mix = (p0: number, p1: number, p2: number, p3: number, t: number): number => {
    const s = 1 - t
    return s * s * s * p0 + 3 * s * s * t * p1 + 3 * s * t * t * p2 + t * t * t * p3
  }
  const reach = Math.abs(x1 - x0) + Math.abs(y1 - y0) + Math.abs(x3 - x2) + Math.abs(y3 - y2)
  const parts = partsOf(reach * pen.scale)
  for (let part = 1; part <= parts; part++) {
    lineTo(pen, mix(x0, x1, x2, x3, part / parts), mix(y0, y1, y2, y3, part / parts))
  }
  pen.controlX = x2
  pen.controlY = y2
}

const quadratic = (pen: Pen, x1: number, y1: number, x2: number, y2: number): void => {
  const { x: x0, y: y0 } = pen
  const third = (end: number, middle: number): number => end + (2 * (middle - end)) / 3
  cubic(pen, third(x0, x1), third(y0, y1), third(x2, x1), third(y2, y1), x2, y2)
  pen.controlX = x1
  pen.controlY = y1
}

/** Draws one command of a path. If its letter is lower-case, its points are relative to the pen. */
const draw = (pen: Pen, letter: string, values: ReadonlyArray<number>): void => {
  const { x, y, lastCurve } = pen
  const upper = letter.toUpperCase()
  const [baseX, baseY] = letter === upper ? [0, 0] : [x, y]
  const place = (value: number, at: number): number => value + (upper === "V" || at % 2 === 1 ? baseY : baseX)
  const [a, b, c, d, e, f] = upper === "A" ? values : values.map(place)
  const smooth = (kinds: string): readonly [number, number] =>
    kinds.includes(lastCurve) && lastCurve !== "" ? [2 * x - pen.controlX, 2 * y - pen.controlY] : [x, y]
  if (upper === "M") {
    Object.assign(pen, { x: a, y: b, startX: a, startY: b })
    pen.lines.push({ points: [a, b], closed: false })
  } else if (upper === "L") lineTo(pen, a, b)
  else if (upper === "H") lineTo(pen, a, y)
  else if (upper === "V") lineTo(pen, x, a)
  else if (upper === "C") cubic(pen, a, b, c, d, e, f)
  else if (upper === "S") cubic(pen, ...smooth("CS"), a, b, c, d)
  else if (upper === "Q") quadratic(pen, a, b, c, d)
  else if (upper === "T") quadratic(pen, ...smooth("QT"), a, b)
  else if (upper === "A") {
    const [endX, endY] = values.slice(5)
    ellipticArc(pen, { radii: [a, b], degrees: c, isLarge: d !== 0, isClockwise: e !== 0 }, endX + baseX, endY + baseY)
  } else {
    const last = pen.lines.at(-1)
    if (last !== undefined) last.closed = true
    Object.assign(pen, { x: pen.startX, y: pen.startY })
  }
  pen.lastCurve = "CSQT".includes(upper) ? upper : ""
}

/** The shape of an arc of an ellipse, and which of the four arcs between two points it is. */
interface EllipticArc {
  readonly radii: readonly [number, number]
  readonly degrees: number
  readonly isLarge: boolean
  readonly isClockwise: boolean
}

/** Draws an arc of an ellipse to a point, by the formulas in the SVG specification's notes on arcs. */
const ellipticArc = (pen: Pen, { radii, degrees, isLarge, isClockwise }: EllipticArc, x1: number, y1: number): void => {
  const { x, y } = pen
  let [rx, ry] = radii.map(Math.abs)
  if (rx === 0 || ry === 0 || (x === x1 && y === y1)) return lineTo(pen, x1, y1)
  const angle = (degrees * turn) / 360
  const [cosine, sine] = [cos(angle), sin(angle)]
  const [halfX, halfY] = [(x - x1) / 2, (y - y1) / 2]
  const [px, py] = [cosine * halfX + sine * halfY, cosine * halfY - sine * halfX]
  const size = (px * px) / (rx * rx) + (py * py) / (ry * ry)
  if (size > 1) [rx, ry] = [rx * Math.sqrt(size), ry * Math.sqrt(size)]
  const denominator = rx * rx * py * py + ry * ry * px * px
  const root = Math.sqrt(Math.max(0, (rx * rx * ry * ry) / denominator - 1)) * (isLarge === isClockwise ? -1 : 1)
  const [cx, cy] = [(root * rx * py) / ry, (-root * ry * px) / rx]
  const [middleX, middleY] = [cosine * cx - sine * cy + (x + x1) / 2, sine * cx + cosine * cy + (y + y1) / 2]
  const from = angleOf((px - cx) / rx, (py - cy) / ry)
  const by = angleOf((-px - cx) / rx, (-py - cy) / ry) - from
  const points = arcPoints(0, 0, [rx, ry], pen.scale, from, by + missingTurn(by, isClockwise))
  for (let at = 2; at < points.length - 2; at += 2) {
    const [ax, ay] = [points[at], points[at + 1]]
    lineTo(pen, middleX + cosine * ax - sine * ay, middleY + sine * ax + cosine * ay)
  }
  lineTo(pen, x1, y1)
}

/** Returns the full turn to add to an angle so that it has the direction of its arc: 0 or ± 2π. */
const missingTurn = (by: number, isClockwise: boolean): number => {
  if (isClockwise) return by < 0 ? turn : 0
  return by > 0 ? -turn : 0
}

/** Returns the angle of a direction, by bisection with our own sine: `Math.atan2` may differ between engines. */
const angleOf = (x: number, y: number): number => {
  const length = Math.sqrt(x * x + y * y)
  const [cosine, sine] = [x / length, Math.abs(y) / length]
  let [low, high] = [0, Math.PI]
  for (let step = 0; step < 52; step++) {
    const middle = (low + high) / 2
    if (cos(middle) > cosine) low = middle
    else high = middle
  }
  // Near 0 and π, compare sines, which are more precise there than cosines.
  const angle = (low + high) / 2
  const cubed = (sine * sine * sine) / 6
  const nearEnd = cosine > 0 ? sine + cubed : Math.PI - sine - cubed
  const precise = sine < 0.1 ? nearEnd : angle
  return y < 0 ? -precise : precise
}
