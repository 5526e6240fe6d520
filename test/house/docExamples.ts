import { globSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as effect from "effect"
import * as ai from "effect/ai"
import * as library from "../../src/index.ts"

/** A piece of code in a text, as a program of its own that says where it stands. */
export interface Example {
  /** `src/agents/lm/Lms.ts`, and which of its pieces. */
  readonly at: string
  readonly name: string
  readonly program: string
}

const fenced = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g), ([, code]) => code)

/** The text of comments alone, without their stars. */
const commentsOf = (source: string): string =>
  Array.from(source.matchAll(/\/\*\*([\s\S]*?)\*\//g), ([, text]) => text.replace(/^ *\* ?/gm, "")).join("\n")

/** Returns the names that a module exports, with its types, which do not exist at run time. */
const exportsIn = (source: string): ReadonlySet<string> =>
  new Set(
    Array.from(
      source.matchAll(/^export (?:declare )?(?:const|class|function\*?|interface|type) (\w+)/gm),
      ([, name]) => name,
    ),
  )

const isType = (source: string, name: string): boolean =>
  !new RegExp(`^export (?:declare )?(?:const|class|function\\*?) ${name}\\b`, "m").test(source)

/** Used by itself: not a property, and not the key of one. */
const uses = (code: string, name: string): boolean =>
  new RegExp(`(?<![\\w$"'\`]|[^.]\\.)${name}(?![\\w$]|: )`).test(code)

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(?:const|let) (?:${name}\\b|[{[][^=]*\\b${name}\\b[^=]*=)`).test(code)

interface Module {
  readonly file: string
  readonly source: string
  /** The names of its exports. */
  readonly exported: ReadonlySet<string>
}

const moduleOf = (root: string, file: string): Module => {
  const source = readFileSync(join(root, file), "utf8")
  return { file, source, exported: exportsIn(source) }
}

/** Returns a module and those that it imports. */
const withImports = (own: Module, modules: ReadonlyArray<Module>): ReadonlyArray<Module> => {
  const paths = Array.from(own.source.matchAll(/ from "(\.[^"]+)"/g), ([, path]) => join(dirname(own.file), path))
  return [own, ...modules.filter(({ file }) => paths.includes(file))]
}

/**
 * Returns the code as a program that imports what it uses: from its own module, the library, what it is given, Effect, and
 * the modules that its own imports. `modules` are these two kinds, its own first; documents have none.
 */
const programOf = (code: string, modules: ReadonlyArray<Module>, given: ReadonlyArray<Module>): string => {
  const said = code.match(/^import .*$/gm) ?? []
  const body = code
    .replace(/^import .*\n/gm, "")
    .replace(/^export default /gm, "const exported = ")
    .replace(/^export /gm, "")
  const withoutComments = body.replace(/(?<=^|\s)\/\/ .*/gm, "")
  const words = new Set(withoutComments.match(/\w+/g))
  const taken = new Set<string>(said.flatMap((line) => line.match(/\w+/g) ?? []))
  const free = (name: string): boolean =>
    words.has(name) && !taken.has(name) && uses(withoutComments, name) && !declares(body, name)
  const imported = (names: Iterable<string>, from: string, source?: string): ReadonlyArray<string> => {
    const found = [...names].filter(free)
    for (const name of found) taken.add(name)
    const written = found.map((name) => (source !== undefined && isType(source, name) ? `type ${name}` : name))
    return found.length === 0 ? [] : [`import { ${written.join(", ")} } from "${from}"`]
  }
  const fromModule = ({ file, source, exported }: Module): ReadonlyArray<string> =>
    imported(exported, `../${file}`, source)
  // `TensorFiles.open` is an export of `TensorFiles.ts`.
  const whole = ({ file, source }: Module): ReadonlyArray<string> => {
    const name = basename(file, ".ts")
    if (!body.includes(`${name}.`) || !isType(source, name) || !free(name)) return []
    taken.add(name)
    return [`import * as ${name} from "../${file}"`]
  }
  const effects = Object.keys(effect).filter((name) => !(name in globalThis))
  // A module's own functions before others of that name; what is written big is a module of the library.
  const own = modules.slice(0, 1)
  const small = own.map((module) => ({
    ...module,
    exported: new Set([...module.exported].filter((name) => /^[a-z]/.test(name))),
  }))
  const lines = [
    ...said,
    ...small.flatMap(fromModule),
    ...imported(Object.keys(library), "effect-rl"),
    ...own.flatMap(whole),
    ...own.flatMap(fromModule),
    ...given.flatMap(fromModule),
    ...imported(effects, "effect"),
    ...imported(Object.keys(ai), "effect/ai"),
    ...modules.flatMap(fromModule),
    ...(taken.has("Effect") ? [] : ['import { Effect } from "effect"']),
  ]
  // A program without Effects awaits promises.
  const [opening, closing] = /\bawait /.test(body) ? ["async () => {", "}"] : ["Effect.gen(function* () {", "})"]
  return `${lines.join("\n")}\n\nexport const example = ${opening}\n${body}${closing}\n`
}

/** All of them. */
export const examplesIn = (root: string): ReadonlyArray<Example> => {
  const modules = globSync("src/**/*.ts", { cwd: root })
    .sort()
    .map((file) => moduleOf(root, file))
  const everywhere = moduleOf(root, "test/house/givenToExamples.ts")
  const trainer = moduleOf(root, "test/house/givenToTrainer.ts")
  const examples = (file: string, text: string, near: ReadonlyArray<Module>): ReadonlyArray<Example> =>
    fenced(text).map((code, at) => ({
      at: `${file}, example ${at + 1}`,
      name: `${file.replace(/\W+/g, "_")}_${at + 1}.ts`,
      program: programOf(code, near, file.startsWith("src/trainer/") ? [trainer, everywhere] : [everywhere]),
    }))
  return [
    ...modules.flatMap((own) =>
      own.source.includes("```ts") ? examples(own.file, commentsOf(own.source), withImports(own, modules)) : [],
    ),
    ...["README.md", ...globSync("docs/**/*.md", { cwd: root })].flatMap((file) =>
      examples(file, readFileSync(join(root, file), "utf8"), []),
    ),
  ]
}
