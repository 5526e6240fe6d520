import { readdir, readFile } from "node:fs/promises"
import * as module from "node:module"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

/** The page's own files, which are served and exported as they are. */
export interface PageFile {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array
}

const folder = fileURLToPath(new URL("./page/", import.meta.url))

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

/** What the page computes with the server's own code: modules below `src/`, and all that they import. */
const shared = [
  "dashboard/bands",
  "dashboard/rounded",
  "dashboard/transcripts/Episode",
  "statistics/resampling",
  "rng/Rng",
  "rng/Philox",
  "rng/Elementary",
]

export const pageFiles: Effect.Effect<ReadonlyArray<PageFile>> = Effect.promise(async () => {
  const names = (await readdir(folder)).filter((name) => extname(name) in types)
  const own = names.map(async (name) => ({
    name,
    type: types[extname(name)],
    bytes: await readFile(join(folder, name)),
  }))
  const lib = shared.map(async (name) => ({
    name: `lib/${name}.js`,
    type: types[".js"],
    bytes: new TextEncoder().encode(await script(name)),
  }))
  return Promise.all([...own, ...lib])
})

/** Once built they are scripts; in the repository they are TypeScript, of which the types are taken away. */
const script = async (name: string): Promise<string> => {
  const isSource = extname(import.meta.url) === ".ts"
  const text = await readFile(new URL(`../${name}${isSource ? ".ts" : ".js"}`, import.meta.url), "utf8")
  if (!isSource) return text
  return withoutTypes(text).replace(/(from "\.[^"]*)\.ts"/g, '$1.js"')
}

/** Node warns each user that this may change, who can do nothing about it; the tests see whether it has. */
const withoutTypes = (text: string): string => {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return module.stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}
