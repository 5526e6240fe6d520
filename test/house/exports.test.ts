import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The folders whose files import from `src/`. */
const folders = ["src", "test", "property-tests", "bench", "examples", "scripts", "bin", "website"]

/** Whether the files of a folder are installed or built. An installed one may link to the whole project. */
const isMade = (folder: string): boolean => /(^|[\\/])(node_modules|dist|\.pages)$/.test(folder)

const files = folders.flatMap((folder) =>
  globSync("**/*.{ts,js,mjs,tsx}", { cwd: join(root, folder), exclude: isMade }).map((file) => `${folder}/${file}`),
)

/** The texts of the files without the comments that stand on lines of their own, in which examples import and export, too. */
const texts = new Map(
  files.map((file) => [file, readFileSync(join(root, file), "utf8").replace(/^ *(\/\/.*|\/\*[^]*?\*\/)/gm, "")]),
)

/** The modules whose exports are the package's public names. */
const isEntry = (file: string): boolean => /^src\/(\w+\/index|index|node|web)\.ts$/.test(file)

/** Modules for programs of others: of edge workers, and of pages that render an env. Two of them are texts in a module. */
const isForOthers = (file: string): boolean =>
  /^src\/rl\/export\/worker\/(policy\.js|card\.d\.ts|declarations\.ts)$/.test(file)

interface Named {
  readonly module: string
  /** The name that the module exports; `*` stands for all of its names. */
  readonly name: string
}

/** The names of a clause in braces, such as `{ type A, b as c }`: those in the module, and those that they get. */
const namesIn = (clause: string): ReadonlyArray<{ readonly from: string; readonly to: string }> =>
  clause
    .split(",")
    .map((part) => part.trim().replace(/^type /, ""))
    .filter((part) => part !== "")
    .map((part) => part.split(/\s+as\s+/))
    .map(([from, to = from]) => ({ from, to }))

const at = (file: string, specifier: string): string => relative(root, resolve(root, dirname(file), specifier))

const declared =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm
const clauses = /^ *(import|export) (?:type )?(?:(\w+),? )?(?:\{([^}]*)\}|\*(?: as (\w+))?)? ?from\s+"(\.[^"]*)"/gm

/** The names that a file exports, its own and those of other modules. */
const exportsOf = (text: string): ReadonlyArray<string> => [
  ...[...text.matchAll(declared)].map((match) => match[1]),
  ...[...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap((match) => namesIn(match[1]).map(({ to }) => to)),
]

/** The names of `src/` that a file uses. */
const usesOf = (file: string, text: string): ReadonlyArray<Named> => {
  const uses = [...text.matchAll(clauses)].flatMap(([, verb, , clause, namespace, specifier]): ReadonlyArray<Named> => {
    const module = at(file, specifier)
    if (clause !== undefined) return namesIn(clause).map(({ from }) => ({ module, name: from }))
    if (verb === "export" || namespace === undefined) return [{ module, name: "*" }]
    // A namespace that is passed on, such as `Object.entries(Layout)`, uses all names; `Layout.config` uses one.
    const isWhole = new RegExp(`(?<!(?<!\\.\\.)\\.)\\b${namespace}\\b(?!\\.\\w|:)`).test(
      text.replace(/^import [^]*?from "[^"]*"/gm, ""),
    )
    if (isWhole) return [{ module, name: "*" }]
    return [...text.matchAll(new RegExp(`\\b${namespace}\\.(\\w+)`, "g"))].map((match) => ({ module, name: match[1] }))
  })
  // Of a module that is loaded when it is needed, any word of the file may be a name. Browser tests load the page's by address.
  const loaded = [...text.matchAll(/import\(\s*["']([./][^"']*)["']/g)].map((match) =>
    match[1].startsWith("/") ? `src/command/ui/page${match[1]}` : at(file, match[1]),
  )
  const words = loaded.length === 0 ? [] : [...new Set(text.match(/\w+/g))]
  return [...uses, ...loaded.flatMap((module) => words.map((name) => ({ module, name })))]
}

describe("exports", () => {
  it("count as used by imports, namespaces, exports of others, and modules that are loaded later", () => {
    const names = (text: string) => usesOf("src/run/Run.ts", text).map(({ module, name }) => `${module} ${name}`)
    assert.deepStrictEqual(names('import { a, type B as C } from "./x.ts"'), ["src/run/x.ts a", "src/run/x.ts B"])
    assert.deepStrictEqual(names('export * as X from "../x.ts"'), ["src/x.ts *"])
    assert.deepStrictEqual(names('import * as X from "../x.ts"\nconst y = [X.a, X.b]'), ["src/x.ts a", "src/x.ts b"])
    assert.deepStrictEqual(names('import * as X from "../x.ts"\nconst y = { ...X }'), ["src/x.ts *"])
    assert.include(names('const { a } = await import("./x.ts")'), "src/run/x.ts a")
    assert.include(names("import('/parts/x.js').then(({ a }) => a())"), "src/command/ui/page/parts/x.js a")
  })

  it("are imported by another file, or public", () => {
    const used = new Set<string>()
    for (const [file, text] of texts) for (const { module, name } of usesOf(file, text)) used.add(`${module} ${name}`)
    const unused = [...texts]
      .filter(([file]) => file.startsWith("src/") && !isEntry(file) && !isForOthers(file))
      .flatMap(([file, text]) => exportsOf(text).map((name) => ({ file, name })))
      .filter(({ file, name }) => !used.has(`${file} ${name}`) && !used.has(`${file} *`))
      .map(({ file, name }) => `${file}: ${name}`)
    assert.deepStrictEqual(unused, [])
  })
})
