/**
 * Bounds what a model may ask of MuJoCo before MuJoCo reads it. A few lines of MJCF can ask for a billion bodies, or for a
 * height field of many gigabytes, with which it would compute for hours or fill the memory. Reading the text takes linear time.
 */
import { utf8 } from "../../../base/config/utf8.ts"
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

/** Throws an `EnvError` if a model is larger than any that makes sense. */
export const checkLimits = (id: string, { xml, files = {}, path }: Mjcf): void => {
  const where = path ?? "model"
  const bytes = Object.values(files).reduce((sum, { length }) => sum + length, xml.length)
  if (bytes > mostBytes) throw invalid(id, `${where}: the model and its files have more than ${mostBytes / 2 ** 20} MB`)
  const contents = Object.entries(files).map(([name, content]) => [name, modelBytesOf(content)] as const)
  const texts = contents.filter(([, content]) => content.length > 0)
  let elements = 0
  let attached = 1
  for (const [name, content] of [[where, utf8.encode(xml)] as const, ...texts]) {
    if (content.length > mostText) throw invalid(id, `${name}: its text has more than ${mostText / 2 ** 20} MB`)
    const { problem, total, attaches } = sizesOf(utf8.decode(content))
    elements += total
    attached *= 1 + attaches
    const found = problem ?? totalProblem(elements * attached)
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

const totalProblem = (elements: number): string | undefined =>
  elements > mostElements
    ? `the model has more than ${mostElements} elements, with the copies that it asks for; use fewer`
    : undefined

interface Sizes {
  /** What is wrong with an element, with its line. */
  readonly problem?: string
  /** The number of elements, with copies. */
  readonly total: number
  /** How many other models it attaches to bodies, with copies. */
  readonly attaches: number
}

/** Adds up the elements of a model's text. */
const sizesOf = (text: string): Sizes => {
  /** The copies that each open `replicate` asks for, multiplied. */
  const copies = [1]
  let [total, attaches] = [0, 0]
  for (const tag of tagsOf(text)) {
    const factor = copies[copies.length - 1]
    if (tag.isEnd) {
      if (tag.name === "replicate" && copies.length > 1) copies.pop()
      continue
    }
    const { problem, amount } = amountOf(tag)
    const own = factor * amount
    if (tag.name === "replicate" && !tag.isEmpty) copies.push(own)
    if (tag.name === "attach") attaches += factor
    total += own
    const found = problem ?? totalProblem(total)
    if (found === undefined) continue
    const line = text.slice(0, tag.at).split("\n").length
    return { problem: `<${tag.name}> in line ${line}: ${found}`, total, attaches }
  }
  return { total, attaches }
}

/** An element's beginning or end. `attributes` is its text, with quotes. */
interface Tag {
  readonly name: string
  readonly attributes: string
  readonly at: number
  readonly isEnd: boolean
  readonly isEmpty: boolean
}

/** Lists the tags of a text. What XML does not allow is left to MuJoCo, which refuses it. */
function* tagsOf(text: string): Generator<Tag> {
  let at = text.indexOf("<")
  while (at >= 0) {
    const end = endOf(text, at)
    const inner = text.slice(at + 1, end)
    const [, slash, name = ""] = /^(\/?)([\w:.-]+)/.exec(inner) ?? []
    if (name !== "")
      yield { name, attributes: inner.slice(name.length), at, isEnd: slash === "/", isEmpty: inner.endsWith("/") }
    at = text.indexOf("<", end)
  }
}

/** Returns where a tag, a comment or the like ends. A `>` in quotes does not end a tag. */
const endOf = (text: string, at: number): number => {
  for (const [begin, end] of [
    ["<!--", "-->"],
    ["<![CDATA[", "]]>"],
  ]) {
    if (!text.startsWith(begin, at)) continue
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

/** Returns how many elements an element stands for, and what is wrong with its sizes. */
const amountOf = ({ name, attributes }: Tag): { readonly amount: number; readonly problem?: string } => {
  const numbers = (attribute: string): ReadonlyArray<number> => {
    const value = new RegExp(`\\s${attribute}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes)
    const text = value?.[1] ?? value?.[2]
    return text === undefined ? [] : text.trim().split(/\s+/).map(Number)
  }
  const product = (values: ReadonlyArray<number>) => values.reduce((all, value) => all * value, 1)
  const pixels =
    product([...numbers("nrow"), ...numbers("ncol")]) * product([...numbers("width"), ...numbers("height")])
  if ((name === "hfield" || name === "texture") && !(pixels <= mostPixels))
    return { amount: 1, problem: `expected at most ${mostPixels} numbers or pixels, found ${pixels}` }
  const params = name === "mesh" && /\sbuiltin\s*=/.test(attributes) ? numbers("params") : []
  if (params.some((value) => !(value <= largestParameter)))
    return { amount: 1, problem: `expected parameters of at most ${largestParameter}, found ${params.join(" ")}` }
  const iterations = name === "option" ? solvers.flatMap((solver) => numbers(`${solver}iterations`)) : []
  if (iterations.some((value) => !(value <= mostIterations)))
    return { amount: 1, problem: `expected at most ${mostIterations} iterations, found ${iterations.join(", ")}` }
  const amount = product(numbers("count"))
  // References to characters, such as &#57; for 9, could hide a number.
  return amount >= 0 ? { amount } : { amount: 1, problem: "count: expected whole numbers" }
}
