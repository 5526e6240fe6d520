// Bundles what `effect run` loads of Effect into one file, dist/bundle/effect/all.js, which loads in about half of the time that
// the hundreds of modules of Effect's own packages take. For each of these modules a file below dist/bundle/effect/ exports the
// same from the bundle, and bin/bundledEffect.js lets all imports of such a module lead there, a user's too. So what the command
// loads of Effect exists once.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire, isBuiltin } from "node:module"
import { dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type InputOptions, type Plugin, rolldown } from "rolldown"
import { ascii } from "./ascii.ts"
import { copyLicences } from "./licences.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = join(root, "dist/bundle/effect")

/** The packages of Effect that are bundled, each with the package that depends on it, if that is not effect-rl. */
const packages: ReadonlyArray<{ readonly name: string; readonly of?: string }> = [
  { name: "effect" },
  { name: "@effect/platform-node" },
  { name: "@effect/platform-node-shared", of: "@effect/platform-node" },
]

/** Tells whether a specifier, or the name of a package, is of these packages. */
export const isOfEffect = (specifier: string): boolean =>
  packages.some(({ name }) => specifier === name || specifier.startsWith(`${name}/`))

const require = createRequire(join(root, "package.json"))

const installed = packages.map(({ name, of }) => {
  const from = of === undefined ? require : createRequire(require.resolve(`${of}/package.json`))
  const manifest = from.resolve(`${name}/package.json`)
  return { name, of, folder: dirname(manifest), version: JSON.parse(readFileSync(manifest, "utf8")).version }
})

const options = (input: Record<string, string>, plugin: Plugin): InputOptions => ({
  input,
  cwd: root,
  platform: "node",
  external: isBuiltin,
  plugins: [plugin, ascii],
})

/** The files of all modules that some modules import at once, themselves among them. */
const filesOf = async (specifiers: ReadonlyArray<string>): Promise<ReadonlySet<string>> => {
  const files = new Set<string>()
  const input = Object.fromEntries(specifiers.map((specifier, index) => [`m${index}`, specifier]))
  const bundle = await rolldown(
    options(input, {
      name: "files",
      buildEnd() {
        for (const id of this.getModuleIds()) if (id.includes("node_modules")) files.add(id)
      },
    }),
  )
  await bundle.generate()
  await bundle.close()
  return files
}

/** The bundled files that a module outside of the bundle can import: public ones, and those that its package's others import. */
const importable = (bundled: ReadonlySet<string>): ReadonlyArray<string> => {
  const imported = new Set<string>()
  for (const { folder } of installed) {
    for (const name of readdirSync(join(folder, "dist"), { recursive: true, encoding: "utf8" })) {
      const file = join(folder, "dist", name)
      if (!file.endsWith(".js") || bundled.has(file)) continue
      for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
        imported.add(join(dirname(file), path))
      }
    }
  }
  return [...bundled].filter((file) => !file.includes(`${sep}internal${sep}`) || imported.has(file)).sort()
}

/** The exports of a module that its code assigns to after it was loaded. */
const assignedLater = (file: string): ReadonlySet<string> =>
  new Set(Array.from(readFileSync(file, "utf8").matchAll(/^export (?:let|var) (\w+)/gm), ([, name]) => name))

const entry = "all modules"

/**
 * Writes the bundle of these modules of Effect and of all that they import. It exports one object for each module: V8 looks a
 * variable of a module up among all that the module exports, one by one, so thousands of exports would slow every first call.
 */
export const bundleEffect = async (specifiers: ReadonlyArray<string>): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  const bundled = await filesOf(specifiers)
  const modules = importable(bundled).map((path) => {
    const owner = installed.find(({ folder }) => path.startsWith(folder + sep))
    if (owner === undefined) throw new Error(`${path} is in none of the packages of Effect, but in the bundle`)
    return { path, of: owner.name, file: relative(owner.folder, path).replaceAll(sep, "/") }
  })
  const exports: Array<string> = []
  for (const [index, { file, of, path }] of modules.entries()) {
    const later = assignedLater(path)
    const names = Object.keys(await import(pathToFileURL(path).href))
    const fixed = names.filter((key) => !later.has(key))
    const live = names.filter((key) => later.has(key))
    exports.push(`export * as m${index} from ${JSON.stringify(path)}`)
    if (live.length > 0) {
      const renamed = live.map((key) => `${key} as m${index}_${key}`).join(", ")
      exports.push(`export { ${renamed} } from ${JSON.stringify(path)}`)
    }
    const facade = join(folder, of, file)
    const all = JSON.stringify(posix.relative(posix.dirname(posix.join(of, file)), "all.js"))
    mkdirSync(dirname(facade), { recursive: true })
    writeFileSync(
      facade,
      [
        `import { m${index} as m } from ${all}`,
        ...fixed.map((key, at) => `const e${at} = m.${key}`),
        `export { ${fixed.map((key, at) => `e${at} as ${key}`).join(", ")} }`,
        ...live.map((key) => `export { m${index}_${key} as ${key} } from ${all}`),
        "",
      ].join("\n"),
    )
  }
  const bundle = await rolldown(
    options(
      { all: entry },
      {
        name: "entry",
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) => (id === entry ? exports.join("\n") : undefined),
      },
    ),
  )
  await bundle.write({ dir: folder, format: "esm", comments: false, codeSplitting: false })
  await bundle.close()
  copyLicences(bundled, join(folder, "../licences"))
  const list = {
    packages: installed.map(({ name, of, version }) => ({ name, of, version })),
    modules: modules.map(({ file, of }) => ({ of, file })),
  }
  writeFileSync(join(folder, "bundled.json"), `${JSON.stringify(list)}\n`)
}
