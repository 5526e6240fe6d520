/**
 * Bounds what a model may ask of MuJoCo before MuJoCo reads it. A few lines of MJCF can ask for a billion bodies, or for a
 * height field of many gigabytes, with which it would compute for hours or fill the memory. Reading the text takes linear time.
 */
import { utf8 } from "../../../base/text/utf8.ts"
import { invalid } from "../../../base/EnvError.ts"
import type { Mjcf } from "./Simulation.ts"

/** The most bytes that a model and its files may have together. */
export const mostBytes = 512 * 2 ** 20

/** The most bytes of a model's text, and of each model that it includes. */
const mostText = 64 * 2 ** 20

/** The most elements of a model, with the copies that it asks for. */
const mostElements = 50_000

/** The most numbers of a height field, and pixels of a texture. */
const mostPixels = 64 * 2 ** 20

/** The largest number in the parameters of a mesh that MuJoCo makes, such as how finely a sphere is divided. */
const largestParameter = 1000

/** The most iterations of each of MuJoCo's solvers in a step; its own defaults are 100 and fewer. */
const mostIterations = 10_000

/** The most points of all meshes that MuJoCo makes: it needs ten seconds for a million. */
const mostPoints = 1_000_000

/** The most keyframes, and numbers of the user for each body, joint and the like, that a model may reserve memory for. */
const mostReserved = 10_000

/** Throws an `EnvError` if a model is larger than any that makes sense. */
export const checkLimits = (id: string, { xml, files = {}, path }: Mjcf): void => {
  const where = path ?? "model"
  const bytes = Object.values(files).reduce((sum, { length }) => sum + length, xml.length)
  if (bytes > mostBytes) throw invalid(id, `${where}: the model and its files have more than ${mostBytes / 2 ** 20} MB`)
  const contents = Object.entries(files).map(([name, content]) => [name, modelBytesOf(content)] as const)
  const texts = contents.filter(([, content]) => content.length > 0)
  let [elements, points, attached] = [0, 0, 1]
  for (const [name, content] of [[where, utf8.encode(xml)] as const, ...texts]) {
    if (content.length > mostText) throw invalid(id, `${name}: its text has more than ${mostText / 2 ** 20} MB`)
    const sizes = sizesOf(utf8.decode(content))
    elements += sizes.total
    points += sizes.points
    attached *= 1 + sizes.attaches
    const found = sizes.problem ?? totalProblem({ total: elements * attached, points: points * attached })
    if (found !== undefined) throw invalid(id, `${name}: ${found}`)
  }
}

/**
 * Returns the part of a file that MuJoCo reads if a model includes it, whatever the file's name is: the bytes before the first
 * 0. It is empty if it has no element, as those of meshes and pictures.
 */
export const modelBytesOf = (content: Uint8Array): Uint8Array => {
  const end = content.indexOf(0)
  const text = end < 0 ? content : content.subarray(0, end)
  return text.includes(lessThan) ? text : new Uint8Array(0)
}

/** The byte of the character with which an element begins. */
const lessThan = 60

const totalProblem = ({ total, points }: Pick<Sizes, "total" | "points">): string | undefined => {
  if (total > mostElements)
    return `the model has more than ${mostElements} elements, with the copies that it asks for; use fewer`
  return points > mostPoints ? `the meshes that MuJoCo makes have more than ${mostPoints} points; use fewer` : undefined
}

interface Sizes {
  /** What is wrong with an element, with its line. */
  readonly problem?: string
  /** The number of elements, with copies. */
  readonly total: number
  /** The number of points of the meshes that MuJoCo makes. */
  readonly points: number
  /** How many other models it attaches to bodies, with copies. */
  readonly attaches: number
}

/** Adds up the elements of a model's text. */
const sizesOf = (text: string): Sizes => {
  /** The copies that each open `replicate` asks for, multiplied. */
  const copies = [1]
  let [total, points, attaches] = [0, 0, 0]
  for (const tag of tagsOf(text)) {
    const factor = copies[copies.length - 1]
    if (tag.isEnd) {
      if (tag.name === "replicate" && copies.length > 1) copies.pop()
      continue
    }
    const amount = amountOf(tag)
    const own = factor * amount.elements
    if (tag.name === "replicate" && !tag.isEmpty) copies.push(own)
    if (tag.name === "attach") attaches += factor
    total += own
    points += amount.points
    const found = amount.problem ?? totalProblem({ total, points })
    if (found === undefined) continue
    const line = text.slice(0, tag.at).split("\n").length
    return { problem: `<${tag.name}> in line ${line}: ${found}`, total, points, attaches }
  }
  return { total, points, attaches }
}

/** An element's beginning or end. `attributes` is its text, with quotes. */
interface Tag {
  readonly name: string
  readonly attributes: string
  readonly at: number
  readonly isEnd: boolean
  readonly isEmpty: boolean
}

/** Lists the tags of a text as MuJoCo's XML parser finds them. What it does not allow is left to it: it refuses the model. */
function* tagsOf(text: string): Generator<Tag> {
  let at = text.indexOf("<")
  while (at >= 0) {
    const end = endOf(text, at)
    const inner = text.slice(at + 1, end)
    // The parser allows spaces before a name.
    const [start = "", slash, name = ""] = /^\s*(\/?)([\w:.-]+)/.exec(inner) ?? []
    if (name !== "")
      yield { name, attributes: inner.slice(start.length), at, isEnd: slash === "/", isEmpty: inner.endsWith("/") }
    at = text.indexOf("<", end)
  }
}

/** The other things that begin with `<`, and their ends. Quotes have no meaning in them. */
const otherThings = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
  ["<!", ">"],
  ["<?", "?>"],
] as const

/** Returns where a tag, a comment or the like ends. A `>` in quotes does not end a tag. */
const endOf = (text: string, at: number): number => {
  const other = otherThings.find(([begin]) => text.startsWith(begin, at))
  if (other !== undefined) {
    const [begin, end] = other
    const found = text.indexOf(end, at + begin.length)
    return found < 0 ? text.length : found + end.length - 1
  }
  let quote = ""
  for (let place = at; place < text.length; place++) {
    const letter = text[place]
    if (quote !== "") {
      if (letter === quote) quote = ""
    } else if (letter === '"' || letter === "'") quote = letter
    else if (letter === ">") return place
  }
  return text.length
}

/** The beginnings of the names of attributes that limit the iterations of a solver. */
const solvers = ["", "ls_", "noslip_", "ccd_", "sdf_"]

/** Matches an attribute. It begins only where a name does, so that a long text without one takes linear time. */
const attribute = /(?<=^|[\s"'])([^\s=/"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g

/** Returns the values of attributes by their names. The parser wants no space between a value and the next name. */
const valuesIn = (attributes: string): ReadonlyMap<string, string> =>
  new Map([...attributes.matchAll(attribute)].map(([, name, quoted, single]) => [name, quoted ?? single ?? ""]))

/** What an element stands for: elements with copies, the points of a mesh, and what is wrong with its sizes. */
interface Amount {
  readonly elements: number
  readonly points: number
  readonly problem?: string
}

const product = (values: ReadonlyArray<number>): number => values.reduce((all, value) => all * Math.max(1, value), 1)

/** Returns what an element stands for. */
const amountOf = ({ name, attributes }: Tag): Amount => {
  const values = valuesIn(attributes)
  const numbers = (key: string): ReadonlyArray<number> => {
    const text = values.get(key)?.trim() ?? ""
    return text === "" ? [] : text.split(/\s+/).map(Number)
  }
  const refused = (problem: string): Amount => ({ elements: 1, points: 0, problem })
  if (name === "hfield" || name === "texture") {
    const [width, height] = [product(numbers("width")), product(numbers("height"))]
    // The six sides of a cube are squares, whatever the height.
    const isCube = name === "texture" && values.get("type") !== "2d"
    const pixels = product([...numbers("nrow"), ...numbers("ncol"), isCube ? 6 * width * width : width * height])
    if (!(pixels <= mostPixels)) return refused(`expected at most ${mostPixels} numbers or pixels, found ${pixels}`)
  }
  if (name === "size") {
    const reserved = [...values.keys()].filter((key) => key === "nkey" || key.startsWith("nuser_"))
    const wrong = reserved.find((key) => !numbers(key).every((value) => value <= mostReserved))
    if (wrong !== undefined) return refused(`${wrong}: expected at most ${mostReserved}, found ${values.get(wrong)}`)
  }
  const params = name === "mesh" && values.has("builtin") ? numbers("params") : []
  if (params.some((value) => !(value <= largestParameter)))
    return refused(`expected parameters of at most ${largestParameter}, found ${params.join(" ")}`)
  const limits = [...solvers.map((solver) => `${solver}iterations`), "sdf_initpoints"]
  const iterations = name === "option" ? limits.flatMap(numbers) : []
  if (iterations.some((value) => !(value <= mostIterations)))
    return refused(`expected at most ${mostIterations} iterations, found ${iterations.join(", ")}`)
  const count = numbers("count")
  // References to characters, such as &#57; for 9, could hide a number.
  if (!count.every((value) => Number.isInteger(value) && value >= 0)) return refused("count: expected whole numbers")
  // No copy is as much work as one, until the parser drops it. The bodies of a cable hang on each other, which takes longer.
  const copies = product(count)
  const elements = name === "composite" ? Math.max(copies, copies ** 2 / 10) : copies
  return { elements, points: params.length === 0 ? 0 : Math.max(...params) ** 2 }
}
