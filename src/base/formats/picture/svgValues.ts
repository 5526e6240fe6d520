/**
 * Reads the values of SVG attributes: numbers, shares, colours and transforms. Throws a FormatError for a value that it
 * cannot read, since the picture would be wrong with any other value.
 */
import { FormatError } from "../FormatError.ts"
import { cos, sin } from "../../rng/Elementary.ts"
import type { Colour, Matrix } from "./Picture.ts"

export type Attributes = Readonly<Record<string, string>>

export const failed = (problem: string): FormatError => new FormatError({ message: `SVG: ${problem}` })

const digits = String.raw`[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`
const length = new RegExp(`^\\s*(${digits})(?:px)?\\s*$`)
const share = new RegExp(`^\\s*(${digits})(%?)\\s*$`)
const numbers = new RegExp(digits, "g")
/** Tells whether a text has only numbers, spaces and commas. */
const isList = (text: string): boolean => !/[^\s,]/.test(text.replace(numbers, " "))

/** Returns a number in units or pixels, which are the same here. Throws for other units. */
export const numberIn = (attributes: Attributes, name: string, key: string, otherwise = 0): number => {
  const text = attributes[key]
  if (text === undefined) return otherwise
  const value = Number(length.exec(text)?.[1] ?? NaN)
  if (!Number.isFinite(value)) throw failed(`${key} of ${name}: expected a number, found ${text}`)
  return value
}

/** Returns a number that must not be negative, such as a width. */
export const sizeIn = (attributes: Attributes, name: string, key: string, otherwise = 0): number => {
  const value = numberIn(attributes, name, key, otherwise)
  if (value < 0) throw failed(`${key} of ${name}: expected a number of at least 0, found ${attributes[key]}`)
  return value
}

/** Returns an opacity from 0 to 1, which may be written in per cent. */
export const opacityIn = (attributes: Attributes, name: string, key: string): number => {
  const text = attributes[key]
  if (text === undefined) return 1
  const [, value = "NaN", percent] = share.exec(text) ?? []
  const opacity = Number(value) / (percent === "%" ? 100 : 1)
  if (!Number.isFinite(opacity)) throw failed(`${key} of ${name}: expected a number or a percentage, found ${text}`)
  return Math.min(1, Math.max(0, opacity))
}

/** Returns the numbers of a list, which are separated by spaces, commas or signs. `what` names it in the error. */
export const numbersIn = (text: string, what: string): ReadonlyArray<number> => {
  if (!isList(text)) throw failed(`${what}: expected numbers, found ${JSON.stringify(text.slice(0, 60))}`)
  return Array.from(text.matchAll(numbers), ([number]) => Number(number))
}

/** Returns the x and y of points in turn. */
export const pointsIn = (attributes: Attributes, name: string): ReadonlyArray<number> => {
  const points = numbersIn(attributes.points ?? "", `points of ${name}`)
  if (points.length % 2 === 1)
    throw failed(`points of ${name}: expected x and y in turn, found ${points.length} numbers`)
  return points
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

/** Returns a colour; undefined for none. */
export const colourOf = (text: string, opacity: number): Colour | undefined => {
  if (text === "none" || text === "transparent") return undefined
  const hex = named[text.toLowerCase()] ?? text
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(hex)
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})?$/i.exec(hex)
  const [, ...parts] = short ?? long ?? []
  const values = parts.filter((part) => part !== undefined).map((part) => Number.parseInt(part.padStart(2, part), 16))
  if (values.length >= 3) {
    return { rgb: [values[0], values[1], values[2]], alpha: (opacity * (values[3] ?? 255)) / 255 }
  }
  const inside = /^rgba?\(([^()]*)\)$/.exec(text.trim())?.[1]
  if (inside === undefined || !isList(inside)) {
    throw failed(`expected a colour such as #3d5a80, found ${JSON.stringify(text)}`)
  }
  const [red, green, blue, alpha = 1, ...more] = numbersIn(inside, "colour")
  if (blue === undefined || more.length > 0) {
    throw failed(`expected a colour such as #3d5a80, found ${JSON.stringify(text)}`)
  }
  return { rgb: [red, green, blue], alpha: opacity * Math.min(1, Math.max(0, alpha)) }
}

export const times = ([a, b, c, d, e, f]: Matrix, [g, h, i, j, k, l]: Matrix): Matrix => [
  a * g + c * h,
  b * g + d * h,
  a * i + c * j,
  b * i + d * j,
  a * k + c * l + e,
  b * k + d * l + f,
]

const transforms = /(\w+)\s*\(([^()]*)\)/g
/** For each kind of transform: how many numbers it can have. */
const takes: Readonly<Record<string, ReadonlyArray<number>>> = {
  translate: [1, 2],
  scale: [1, 2],
  rotate: [1, 3],
  matrix: [6],
}

/** Returns the map of a `transform` such as `translate(4 2) rotate(45)`. */
export const matrixOf = (transform: string): Matrix => {
  if (/[^\s,]/.test(transform.replace(transforms, ""))) {
    throw failed(`expected a transform such as rotate(45), found ${JSON.stringify(transform.slice(0, 60))}`)
  }
  return Array.from(transform.matchAll(transforms)).reduce<Matrix>(
    (matrix, [, kind, values]) => times(matrix, partOf(kind, numbersIn(values, kind))),
    [1, 0, 0, 1, 0, 0],
  )
}

const partOf = (kind: string, values: ReadonlyArray<number>): Matrix => {
  if (takes[kind] === undefined) throw failed(`expected translate, scale, rotate or matrix, found ${kind}`)
  if (!takes[kind].includes(values.length)) {
    throw failed(`${kind}: expected ${takes[kind].join(" or ")} numbers, found ${values.length}`)
  }
  const [a = 0, b, c, d = 0, e = 0, f = 0] = values
  if (kind === "translate") return [1, 0, 0, 1, a, b ?? 0]
  if (kind === "scale") return [a, 0, 0, b ?? a, 0, 0]
  if (kind === "matrix") return [a, b ?? 0, c ?? 0, d, e, f]
  const angle = (a * Math.PI) / 180
  const turned: Matrix = [cos(angle), sin(angle), -sin(angle), cos(angle), 0, 0]
  return b === undefined ? turned : times(times([1, 0, 0, 1, b, c ?? 0], turned), [1, 0, 0, 1, -b, -(c ?? 0)])
}
