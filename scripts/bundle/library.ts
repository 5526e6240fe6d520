// Bundles the library and the command for Node into dist/bundle/, where `effect run` loads a few files instead of hundreds,
// and so starts faster. Bundlers and browsers get the single modules in dist/ instead, to leave out what they don't need; see
// scripts/swapExports.ts. Effect is not in the bundle: a user's program must load the same copy of it; see effect.ts.
import { mkdirSync, writeFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { dirname, isAbsolute, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { type InputOptions, type OutputOptions, type Plugin, rolldown } from "rolldown"
import manifest from "../../package.json" with { type: "json" }
import { ascii } from "./ascii.ts"
import { isOfEffect } from "./effect.ts"
import { copyLicences } from "./licences.ts"
import { programsIn } from "./programs.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const source = join(root, "src")
const dist = join(root, "dist")

const nameOf = (module: string): string => module.replaceAll("/", ".")

const inputs = (modules: ReadonlyArray<string>) =>
  Object.fromEntries(modules.map((module) => [nameOf(module), join(source, `${module}.ts`)]))

/** The entries of the package, `./src/rl/index.ts` and so on, and the command. */
const entries = [
  ...Object.values(manifest.exports).flatMap((path) => /^\.\/src\/([\w/]+)\.ts$/.exec(path)?.[1] ?? []),
  "command/cli/main",
]

/** The programs of threads that import a user's module, and with it the library: each module must exist once in them. */
const hosts = ["rl/env/pool/worker-node"]

/** The other programs that the library starts as threads and processes. */
const programs = programsIn(source).filter((program) => !hosts.includes(program))

/**
 * The files of the bundle, each with what its modules import at once: `command` is loaded for every subcommand. The entries
 * themselves have files of their own: to load what the command shares with the library must not run the command.
 */
const files = [
  { name: "command", from: ["command/cli/main", "command/cli/runs", "command/cli/init/init"] },
  { name: "library", from: ["index", "node", "command/cli/run/run"] },
]

const bundled = Object.keys(manifest.dependencies).filter((name) => !isOfEffect(name))

/**
 * Tells whether an import stays in the bundle as it is: of Node, of Effect, and of a package that a user may install, such as
 * ONNX Runtime, which has binary files. Our other dependencies are bundled with all that they depend on.
 */
const isExternal = (specifier: string, importer?: string): boolean => {
  if (/^[.\0]/.test(specifier) || isAbsolute(specifier) || importer === undefined) return false
  if (isBuiltin(specifier)) return true
  return importer.startsWith(source) && !bundled.some((name) => specifier === name || specifier.startsWith(`${name}/`))
}

/**
 * Lets `import.meta.url` be the address of the module's own file in dist/, from which it finds other files of the package:
 * `define` replaces it by a constant, which this puts into each module that needs it.
 */
const ownAddress: Plugin = {
  name: "own-address",
  transform: (text, path) => {
    if (!path.startsWith(source) || !text.includes("import.meta.url")) return undefined
    const own = relative(source, path).replaceAll(sep, "/").replace(/\.ts$/, ".js")
    return { code: `const ownAddress = new URL("../${own}", addressOfBundle).href; ${text}`, map: null }
  },
}

/**
 * Takes the modules that our code imports as `effect/Schema` from the entry of Effect, which exports each as one object: of a
 * module with hundreds of exports, V8 looks up each name one by one.
 */
const effectEntry: Plugin = {
  name: "effect-entry",
  transform: (text, path) => {
    if (!path.startsWith(source)) return undefined
    const code = text.replace(/^import \* as (\w+) from "effect\/\1"$/gm, 'import { $1 } from "effect"')
    return code === text ? undefined : { code, map: null }
  },
}

/** Maps the path of each module to the paths of the modules that it imports statically. */
type Graph = ReadonlyMap<string, ReadonlyArray<string>>

/** Calls `use` with all modules when they are read, before anything is written. */
const withGraph = (use: (graph: Graph) => void): Plugin => ({
  name: "graph",
  buildEnd() {
    use(new Map(Array.from(this.getModuleIds(), (id) => [id, this.getModuleInfo(id)?.importedIds ?? []])))
  },
})

const reachable = (graph: Graph, modules: ReadonlyArray<string>): ReadonlySet<string> => {
  const found = new Set<string>()
  const follow = (path: string): void => {
    if (found.has(path)) return
    found.add(path)
    graph.get(path)?.forEach(follow)
  }
  for (const module of modules) follow(join(source, `${module}.ts`))
  return found
}

const options = (modules: ReadonlyArray<string>, use: (graph: Graph) => void): InputOptions => ({
  input: inputs(modules),
  platform: "node",
  external: isExternal,
  // A module finds others by its own address, and the bundle that it is in by its file.
  transform: { define: { "import.meta.url": "ownAddress", "import.meta.filename": "addressOfBundle" } },
  plugins: [ownAddress, effectEntry, withGraph(use), ascii],
  // A browser's bundle may divide what Node's keeps in one file.
  checks: { ineffectiveDynamicImport: false },
})

const output: OutputOptions = {
  dir: join(dist, "bundle"),
  format: "esm",
  comments: { legal: true, annotation: false, jsdoc: false },
  sourcemap: true,
  sourcemapExcludeSources: true,
  // Where the package is installed, the others lie beside it.
  sourcemapPathTransform: (path) => path.replace(/^.*\/node_modules\//, "../../../"),
  banner: "const addressOfBundle = import.meta.url;",
}

/** Bundles the library and the command. Returns what they import of Effect before they train. */
export const bundleLibrary = async (): Promise<ReadonlyArray<string>> => {
  let graph: Graph = new Map()
  const bundle = await rolldown(options([...entries, ...hosts], (read) => (graph = read)))
  const own = new Set(Object.values(inputs(entries)))
  const groups = files.map(({ from, name }) => {
    let modules: ReadonlySet<string> | undefined
    return { name, test: (path: string) => !own.has(path) && (modules ??= reachable(graph, from)).has(path) }
  })
  await bundle.write({ ...output, codeSplitting: { groups } })
  await bundle.close()
  copyLicences(graph.keys(), join(dist, "bundle/licences"))
  const atOnce = reachable(
    graph,
    files.flatMap(({ from }) => from),
  )
  return [...atOnce].filter(isOfEffect).sort()
}

/** Bundles the programs of threads and processes. They share no chunk with the library, of which they need a small part. */
export const bundlePrograms = async (): Promise<void> => {
  let graph: Graph = new Map()
  const bundle = await rolldown(options(programs, (read) => (graph = read)))
  await bundle.write({ ...output, chunkFileNames: "program-[hash].js" })
  await bundle.close()
  copyLicences(graph.keys(), join(dist, "bundle/licences"))
  // A program is started by the address of its own file.
  for (const program of [...programs, ...hosts]) {
    const file = join(dist, `${program}.js`)
    mkdirSync(dirname(file), { recursive: true })
    const path = posix.relative(posix.dirname(program), `bundle/${nameOf(program)}.js`)
    writeFileSync(file, `import ${JSON.stringify(path)}\n`)
  }
}
