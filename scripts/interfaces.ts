/** Reads the comments and the stated defaults of the members of interfaces in src/. Scripts and tests use it. */
import { dirname, join } from "node:path"
import { type Meanings, read } from "./meanings.ts"

/** A member of an interface: its comment, split at `@default`. */
export interface Member {
  readonly meaning: string
  /** The text after `@default`. */
  readonly byDefault: string | undefined
}

/** Reads the members of an interface that have comments, by key, with the members that it inherits. */
export const membersOf = (file: string, name: string): ReadonlyMap<string, Member> => {
  const text = read(file)
  const [, bases = "", body] =
    new RegExp(`\\binterface ${name}(?:<.*>)?(?: extends (.*))? \\{(\\n[^]*?\\n)?\\}`).exec(text) ?? []
  const inherited = bases === "" ? [] : bases.split(", ").flatMap((base) => [...baseOf(file, text, base)])
  const entry = /^ {2}\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}readonly (\w+)\??: /gm
  const own = [...(body ?? "").matchAll(entry)].map(([, comment, key]): [string, Member] => {
    const [meaning, byDefault] = comment.replace(/\s*\n\s*\* ?/g, " ").split(" @default ")
    return [key, { meaning: meaning.trim(), byDefault: byDefault?.trim() }]
  })
  return new Map([...inherited, ...own])
}

/**
 * Reads the members of an interface `base` that a file extends. The interface may be in the same file or in an imported
 * one, and may be named with a namespace, as in `Learner.RolloutOptions`. Throws if it is not found.
 */
const baseOf = (file: string, text: string, base: string): ReadonlyMap<string, Member> => {
  const [name, namespace] = base.split(".").toReversed()
  if (text.includes(`interface ${name} `)) return membersOf(file, name)
  const importPattern =
    namespace === undefined
      ? new RegExp(`(?:import|export) (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from "(\\.[^"]+)"`)
      : new RegExp(`import \\* as ${namespace} from "(\\.[^"]+)"`)
  const isReexportedBy = (from: string): boolean => isDeclaredIn(join(dirname(file), from), name)
  const from = importPattern.exec(text)?.[1] ?? reexportedBy(text).find(isReexportedBy)
  if (from === undefined) throw new Error(`${file}: ${base} is neither declared nor imported`)
  const source = join(dirname(file), from)
  return baseOf(source, read(source), name)
}

/** Returns the files of which a file exports everything. */
const reexportedBy = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^export \* from "(\.[^"]+)"/gm)].map(([, from]) => from)

const isDeclaredIn = (file: string, name: string): boolean => {
  const text = read(file)
  return (
    text.includes(`interface ${name} `) ||
    reexportedBy(text).some((from) => isDeclaredIn(join(dirname(file), from), name))
  )
}

export const meaningsOfMembers = (file: string, name: string): Meanings =>
  new Map([...membersOf(file, name)].map(([key, { meaning }]) => [key, meaning]))
