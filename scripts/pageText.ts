// Writes src/rl/env/ui/pageText.ts: the source text of the functions that draw envs, which browsers get. The text is made
// here, once, and not from the functions as they run, because bundlers rename what these functions use.
//   npm run page-text
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { transformSync } from "esbuild"
import { acrobot } from "../src/rl/env/ui/acrobot.ts"
import { drawBoard } from "../src/rl/env/ui/board.ts"
import * as boards from "../src/rl/env/ui/boards.ts"
import { paint } from "../src/rl/env/ui/canvas.ts"
import { cartPole } from "../src/rl/env/ui/cartPole.ts"
import { doubleIntegrator } from "../src/rl/env/ui/doubleIntegrator.ts"
import { lander } from "../src/rl/env/ui/lander.ts"
import { memoryChain } from "../src/rl/env/ui/memoryChain.ts"
import * as minAtarBoards from "../src/rl/env/ui/minAtarBoards.ts"
import { mountainCar } from "../src/rl/env/ui/mountainCar.ts"
import { pendulum } from "../src/rl/env/ui/pendulum.ts"
import { pieces } from "../src/rl/env/ui/pieces.ts"
import { scene } from "../src/rl/env/ui/scene.ts"
import { brushOf, stageOf } from "../src/rl/env/ui/shapes.ts"

/** Returns a value as JavaScript: data as JSON, and functions as their source text. */
const sourceOf = (value: unknown): string => {
  if (typeof value === "function") return `(${String(value)})`
  if (Array.isArray(value)) return `[${value.map(sourceOf).join(", ")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${sourceOf(item)}`)}}`
}

/** Returns the text of a value, minified, because the bundles of browsers contain it besides the functions. */
const minified = (value: unknown): string =>
  transformSync(`export default (${sourceOf(value)})`, { charset: "ascii", target: "es2022", minify: true })
    .code.trim()
    .replace(/^export default\s*/, "")
    .replace(/;$/, "")

/** Returns the source texts by their names in `pageText.ts`. */
export const pageTexts = (): Readonly<Record<string, string>> => {
  const drawings = { acrobot, cartPole, doubleIntegrator, lander, memoryChain, mountainCar, pendulum, scene }
  const values = {
    brushOf,
    stageOf,
    paint,
    drawBoard,
    pieces,
    ...Object.fromEntries(Object.entries(drawings).map(([name, { draw }]) => [name, draw])),
    ...Object.fromEntries(Object.entries({ ...boards, ...minAtarBoards }).map(([name, { look }]) => [name, look])),
  }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, minified(value)]))
}

const file = fileURLToPath(new URL("../src/rl/env/ui/pageText.ts", import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lines = Object.entries(pageTexts()).map(([name, text]) => `export const ${name} = ${JSON.stringify(text)}`)
  const head =
    "/** The source text of the functions that draw envs, for browsers. Written by `npm run page-text`; do not edit. */"
  writeFileSync(file, `${[head, ...lines].join("\n")}\n`)
}
