import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
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

/** Folders whose examples are programs, but for what they are given. */
const folders = [
  "base/rng",
  "base/tokens",
  "run/find",
  "run/read",
  "rl/env",
  "rl/returns",
  "rl/losses",
  "rl/model",
  "rl/learner",
  "rl/algorithms",
  "rl/train",
  "rl/policy",
  "agents",
  "decoder/networks",
  "decoder/huggingFace",
  "decoder/inference",
  "decoder/engine",
]

const fenced = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g), ([, code]) => code)

/** The text of comments alone, without their stars. */
const commentsOf = (source: string): string =>
  Array.from(source.matchAll(/\/\*\*([\s\S]*?)\*\//g), ([, text]) => text.replace(/^ *\* ?/gm, "")).join("\n")

/** Returns the names that a module exports, with its types, which do not exist at run time. */
const exportsIn = (source: string): ReadonlySet<string> =>
  new Set(
    Array.from(
      source.matchAll(/^export (?:declare )?(?:const|class|function|interface|type) (\w+)/gm),
      ([, name]) => name,
    ),
  )

const isType = (source: string, name: string): boolean =>
  !new RegExp(`^export (?:const|class|function) ${name}\\b`, "m").test(source)

/** Used by itself: not a property, and not the key of one. */
const uses = (code: string, name: string): boolean =>
  new RegExp(`(?<![\\w$"'\`]|[^.]\\.)${name}(?![\\w$]|: )`).test(code)

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(?:const|let) (?:${name}\\b|[{[][^=]*\\b${name}\\b[^=]*=)`).test(code)

interface Own {
  readonly file: string
  readonly source: string
}

/** The code with what it uses imported: of the library, of the file that it stands in, of Effect, and what it is given. */
const programOf = (code: string, own: Own | null, given: string): string => {
  const said = code.match(/^import .*$/gm) ?? []
  const body = code
    .replace(/^import .*\n/gm, "")
    .replace(/^export default /gm, "const exported = ")
    .replace(/^export /gm, "")
  const taken = new Set<string>(said.flatMap((line) => line.match(/\w+/g) ?? []))
  const imported = (names: Iterable<string>, from: string, source?: string): ReadonlyArray<string> => {
    const found = [...names].filter((name) => !taken.has(name) && uses(body, name) && !declares(body, name))
    for (const name of found) taken.add(name)
    const written = found.map((name) => (source !== undefined && isType(source, name) ? `type ${name}` : name))
    return found.length === 0 ? [] : [`import { ${written.join(", ")} } from "${from}"`]
  }
  const effects = Object.keys(effect).filter((name) => !(name in globalThis))
  // A module's own functions before others of that name; what is written big is a module of the library.
  const small = (own === null ? [] : [...exportsIn(own.source)]).filter((name) => /^[a-z]/.test(name))
  const others = own === null ? [] : exportsIn(own.source)
  const lines = [
    ...said,
    ...(own === null ? [] : imported(small, `../${own.file}`, own.source)),
    ...imported(Object.keys(library), "effect-rl"),
    ...(own === null ? [] : imported(others, `../${own.file}`, own.source)),
    ...imported(effects, "effect"),
    ...imported(Object.keys(ai), "effect/ai"),
    ...imported(exportsIn(given), "../test/house/givenToExamples.ts"),
    ...(taken.has("Effect") ? [] : ['import { Effect } from "effect"']),
  ]
  // A program without Effects awaits promises.
  const [opening, closing] = /\bawait /.test(body) ? ["async () => {", "}"] : ["Effect.gen(function* () {", "})"]
  return `${lines.join("\n")}\n\nexport const example = ${opening}\n${body}${closing}\n`
}

/** All of them. */
export const examplesIn = (root: string): ReadonlyArray<Example> => {
  const read = (file: string): string => readFileSync(join(root, file), "utf8")
  const given = read("test/house/givenToExamples.ts")
  const examples = (file: string, text: string, own: Own | null): ReadonlyArray<Example> =>
    fenced(text).map((code, at) => ({
      at: `${file}, example ${at + 1}`,
      name: `${file.replace(/\W+/g, "_")}_${at + 1}.ts`,
      program: programOf(code, own, given),
    }))
  const sources = folders.flatMap((folder) => globSync(`src/${folder}/**/*.ts`, { cwd: root })).sort()
  return [
    ...sources.flatMap((file) => {
      const source = read(file)
      return examples(file, commentsOf(source), { file, source })
    }),
    ...["README.md", ...globSync("docs/**/*.md", { cwd: root })].flatMap((file) => examples(file, read(file), null)),
  ]
}
