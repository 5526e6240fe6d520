/**
 * Returns the files of the web page: the files in `page/`, the chart library `uplot`, and the modules of this package
 * that the page imports. The server serves these files as they are, and an exported site has copies of them.
 */
import * as module from "node:module"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem, type PlatformError } from "effect"
import { framePolicy, pagePolicy } from "./guard.ts"
import { utf8 } from "../config/utf8.ts"

interface PageFile {
  /** The file's path relative to the page's address. */
  readonly name: string
  readonly type: string
  /** The Content-Security-Policy that the server sends with the file. */
  readonly policy: string
  readonly bytes: Uint8Array
}

const folder = fileURLToPath(new URL("./page/", import.meta.url))

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

/** The page imports these modules of `src/` from `lib/`. The modules that they import are served too. */
const sharedModules = [
  "dashboard/bands",
  "dashboard/transcripts/Episode",
  "run/find/diff",
  "run/find/filter",
  "run/find/keys",
  "statistics/resampling",
]

const pageFile = (name: string, bytes: Uint8Array): PageFile => ({
  name,
  type: types[posix.extname(name)],
  policy: name === "player/frame.html" ? framePolicy : pagePolicy,
  bytes,
})

/** Reads all files of the page. They are part of this package, so a missing one is a defect. */
export const pageFiles: Effect.Effect<ReadonlyArray<PageFile>> = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const names = (yield* fs.readDirectory(folder, { recursive: true }))
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => posix.extname(name) in types)
  const own = yield* Effect.forEach(
    names,
    (name) => Effect.map(fs.readFile(folder + name), (bytes) => pageFile(name, bytes)),
    { concurrency: "unbounded" },
  )
  const uplot = yield* uplotFiles
  // One style sheet is loaded faster than two. The page's own style comes last, so that it can change uPlot's colours.
  const styled = own.map((file) =>
    file.name === "style.css"
      ? { ...file, bytes: utf8.encode(uplot.style + new TextDecoder().decode(file.bytes)) }
      : file,
  )
  return [...styled, ...(yield* sharedFiles), uplot.script]
}).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))

/** Reads the shared modules and all modules that they import, each once. */
const sharedFiles = Effect.gen(function* () {
  const files = new Map<string, PageFile>()
  const open = [...sharedModules]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (files.has(name)) continue
    const text = yield* script(name)
    files.set(name, pageFile(`lib/${name}.js`, utf8.encode(text)))
    for (const [, target] of text.matchAll(/ from "(\.[^"]+)\.js"/g)) {
      open.push(posix.join(posix.dirname(name), target))
    }
  }
  return [...files.values()]
})

/** Reads a module as a script. A built package has scripts; the repository has TypeScript, whose types are removed. */
const script = (name: string): Effect.Effect<string, PlatformError.PlatformError, FileSystem.FileSystem> => {
  const isSource = posix.extname(import.meta.url) === ".ts"
  const file = fileURLToPath(new URL(`../${name}${isSource ? ".ts" : ".js"}`, import.meta.url))
  return Effect.map(
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(file)),
    (text) => (isSource ? withoutTypes(text).replace(/(from "\.[^"]*)\.ts"/g, '$1.js"') : text),
  )
}

/** Removes types without Node's warning that the function is experimental: users can't act on it, and tests run this. */
const withoutTypes = (text: string): string => {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return module.stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}

const { resolve } = module.createRequire(import.meta.url)

/**
 * Reads uPlot. Its package has the minified build only as a classic script, which defines `uPlot`; an added `export`
 * makes it a module.
 */
const uplotFiles = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const code = yield* fs.readFileString(resolve("uplot/dist/uPlot.iife.min.js"))
  const style = yield* fs.readFileString(resolve("uplot/dist/uPlot.min.css"))
  return { script: pageFile("lib/uplot.js", utf8.encode(`${code}\nexport default uPlot\n`)), style: `${style}\n` }
})
