/**
 * Reads the files of the web page: the files in `page/`, the chart library `uplot`, and the modules of this package
 * that the page imports. The server serves these files, and an exported site has copies of them.
 */
import * as module from "node:module"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem } from "effect"
import { framePolicy, pagePolicy, workerPolicy } from "./guard.ts"
import { workerScript } from "./play/bundle-node.ts"
import { mujocoLicence, mujocoModule, mujocoScript, mujocoStart } from "./play/mujoco.ts"
import { utf8 } from "../../base/text/utf8.ts"

export interface PageFile {
  /** The file's path relative to the page's address. */
  readonly name: string
  readonly type: string
  /** The Content-Security-Policy that the server sends with the file. */
  readonly policy: string
  readonly bytes: Uint8Array
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
}

/** The page's folder, relative to `src/`. */
const folder = "command/ui/page/"

/** Whether this package is its TypeScript source, so that types must be removed; a built package has JavaScript. */
const isSource = posix.extname(import.meta.url) === ".ts"

const mujocoPackage = "@mujoco/mujoco"

const fileOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

const pageFile = (name: string, bytes: Uint8Array): PageFile => ({
  name,
  type: types[posix.extname(name)],
  policy: name === "player/frame.html" ? framePolicy : pagePolicy,
  bytes,
})

/** Reads all files of the page. They are part of this package, so the Effect dies if one is missing. */
export const pageFiles: Effect.Effect<ReadonlyArray<PageFile>> = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const names = (yield* fs.readDirectory(fileOf(folder), { recursive: true })).map((name) => name.replaceAll("\\", "/"))
  const others = names.filter((name) => posix.extname(name) in types && !name.endsWith(".js"))
  const own = yield* Effect.forEach(
    others,
    (name) => Effect.map(fs.readFile(fileOf(folder + name)), (bytes) => pageFile(name, bytes)),
    { concurrency: "unbounded" },
  )
  const uplot = yield* uplotFiles
  // One style sheet is loaded faster than two. The page's own style comes last, so that it can change uPlot's colours.
  const styled = own.map((file) =>
    file.name === "style.css" ? { ...file, bytes: Buffer.concat([uplot.style, file.bytes]) } : file,
  )
  const scripts = names.filter((name) => name.endsWith(".js")).map((name) => folder + name.slice(0, -".js".length))
  return [...styled, ...(yield* modulesFrom(scripts)), uplot.script]
}).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))

/** Whether MuJoCo's package is installed. */
const hasMujoco = ((): boolean => {
  try {
    return import.meta.resolve(mujocoPackage) !== ""
  } catch {
    return false
  }
})()

/** The name under which the script of the web worker of the page "Play" is served. */
export const workerName = "play/worker.js"

/** Makes or reads the script of the web worker. It is a megabyte, so only code that needs it should run this Effect. */
export const workerFile: Effect.Effect<PageFile> = Effect.map(workerScript, (bytes) => ({
  name: workerName,
  type: types[".js"],
  policy: workerPolicy(hasMujoco),
  bytes,
}))

/** Makes a file of MuJoCo from another. It may be large, so it is made only once, for the first client. */
const mujocoFile = (
  name: string,
  from: () => string,
  contentOf: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes,
): readonly [name: string, file: Effect.Effect<PageFile>] => {
  const made = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const bytes = contentOf(yield* fs.readFile(from()))
    return { name: `play/${name}`, type: types[posix.extname(name)], policy: workerPolicy(hasMujoco), bytes }
  }).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))
  return [`play/${name}`, Effect.runSync(Effect.cached(Effect.uninterruptible(made)))]
}

const inMujoco = (file: string) => () => fileURLToPath(import.meta.resolve(`${mujocoPackage}${file}`))

/** The scripts of MuJoCo and its licence, by the names under which they are served; none if its package is not installed. */
export const mujocoFiles: ReadonlyMap<string, Effect.Effect<PageFile>> = new Map(
  hasMujoco
    ? [
        mujocoFile(mujocoModule, inMujoco("")),
        mujocoFile(mujocoScript, inMujoco("/mujoco.wasm"), (wasm) =>
          utf8.encode(mujocoStart(Buffer.from(wasm).toString("base64"))),
        ),
        mujocoFile(mujocoLicence, () => fileOf(`command/ui/play/${mujocoLicence}`)),
      ]
    : [],
)

/** Reads modules and all modules that they import. The names of modules are their paths below `src/`, without extensions. */
const modulesFrom = Effect.fnUntraced(function* (modules: ReadonlyArray<string>) {
  const files = new Map<string, PageFile>()
  const open = [...modules]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (files.has(name)) continue
    const { text, imports } = yield* script(name)
    files.set(name, pageFile(servedName(name), utf8.encode(text)))
    open.push(...imports)
  }
  return [...files.values()]
})

/** Returns the name under which a module is served: the page's own modules at the root, others below `lib/`. */
const servedName = (name: string): string =>
  name.startsWith(folder) ? `${name.slice(folder.length)}.js` : `lib/${name}.js`

/** Reads a module as JavaScript, and replaces its imports with the names under which those modules are served. */
const script = Effect.fnUntraced(function* (name: string) {
  const isTyped = isSource && !name.startsWith(folder)
  const fs = yield* FileSystem.FileSystem
  const code = yield* fs.readFileString(fileOf(name + (isTyped ? ".ts" : ".js")))
  const imports: Array<string> = []
  const text = (isTyped ? withoutTypes(code) : code).replaceAll(
    /(?<=(?:from |import\()")(\.[^"]+)\.[jt]s(?=")/g,
    (_, target: string) => {
      const imported = posix.join(posix.dirname(name), target)
      imports.push(imported)
      return `./${posix.relative(posix.dirname(servedName(name)), servedName(imported))}`
    },
  )
  return { text, imports }
})

/**
 * Removes TypeScript types. It suppresses Node's warning that the function is experimental, because users can't act on it.
 */
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

/** Reads uPlot. Its minified build is a classic script that defines `uPlot`; an added `export` makes it a module. */
const uplotFiles = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const code = yield* fs.readFileString(resolve("uplot/dist/uPlot.iife.min.js"))
  const style = yield* fs.readFileString(resolve("uplot/dist/uPlot.min.css"))
  return {
    script: pageFile("lib/uplot.js", utf8.encode(`${code}\nexport default uPlot\n`)),
    style: utf8.encode(`${style}\n`),
  }
})
