// Bundles what `effect run` loads of Effect into one file, dist/bundle/effect/all.js: it loads three times as fast as the 350
// modules of Effect's own packages. For each of these modules a file below dist/bundle/effect/ exports the same from the
// bundle, and bin/bundledEffect.js lets all imports of such a module lead there, a user's too. So each module exists once.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type InputOptions, type Plugin, rolldown } from "rolldown"
import { copyLicences } from "./licences.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = join(root, "dist/bundle/effect")

/** The packages of Effect that are bundled. Each is found from the one before it. */
const packages = ["effect", "@effect/platform-node", "@effect/platform-node-shared"]

/** Tells whether a specifier, or the name of a package, is of these packages. */
export const isOfEffect = (specifier: string): boolean =>
  packages.some((name) => specifier === name || specifier.startsWith(`${name}/`))

interface Package {
  readonly name: string
  readonly version: string
  readonly folder: string
}

const installed = (): ReadonlyArray<Package> => {
  let from = join(root, "package.json")
  return packages.map((name) => {
    from = createRequire(from).resolve(`${name}/package.json`)
    return { name, folder: dirname(from), version: JSON.parse(readFileSync(from, "utf8")).version }
  })
}

const options = (input: Record<string, string>, plugin: Plugin): InputOptions => ({
  input,
  cwd: root,
  platform: "node",
  external: (specifier) => /^[^./\0]/.test(specifier) && specifier !== entry && !isOfEffect(specifier),
  plugins: [plugin],
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
const importable = (bundled: ReadonlySet<string>, found: ReadonlyArray<Package>): ReadonlyArray<string> => {
  const imported = new Set<string>()
  for (const { folder } of found) {
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
 * variable of a module up among all that the module exports, one by one, so thousands of exports would cost a tenth of a second.
 */
export const bundleEffect = async (specifiers: ReadonlyArray<string>): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  const found = installed()
  const bundled = await filesOf(specifiers)
  const modules = importable(bundled, found).map((file) => {
    const owner = found.find(({ folder }) => file.startsWith(folder + sep))
    if (owner === undefined) throw new Error(`${file} is in none of the packages`)
    return { file, name: posix.join(owner.name, relative(owner.folder, file).replaceAll(sep, "/")) }
  })
  const exports: Array<string> = []
  for (const [index, { file, name }] of modules.entries()) {
    const later = assignedLater(file)
    const names = Object.keys(await import(pathToFileURL(file).href))
    const fixed = names.filter((key) => !later.has(key))
    const live = names.filter((key) => later.has(key))
    exports.push(`export * as m${index} from ${JSON.stringify(file)}`)
    if (live.length > 0) {
      exports.push(
        `export { ${live.map((key) => `${key} as m${index}_${key}`).join(", ")} } from ${JSON.stringify(file)}`,
      )
    }
    const path = join(folder, name)
    const all = JSON.stringify(posix.relative(posix.dirname(name), "all.js"))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(
      path,
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
  const versions = Object.fromEntries(found.map(({ name, version }) => [name, version]))
  writeFileSync(
    join(folder, "bundled.json"),
    `${JSON.stringify({ versions, modules: modules.map(({ name }) => name) })}\n`,
  )
}
