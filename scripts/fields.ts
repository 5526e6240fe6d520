/** Reads the fields of a Schema from its source, with the fields that it spreads from other files. */
import { dirname, join } from "node:path"
import { type Meanings, read } from "./meanings.ts"

interface Field {
  readonly meaning: string | undefined
  /** The source text of the field's Schema, such as `withDefault(Schema.NullOr(Prioritised), null)`. */
  readonly expression: string
  /** The file in which the names in that text are declared. */
  readonly file: string
}

export type Fields = ReadonlyMap<string, Field>

/**
 * Reads the fields of `const NAME = { … }` or `const NAME = Schema.Struct({ … })`, in order, by name. A field that
 * replaces an earlier one without a comment keeps the earlier comment.
 */
export const fieldsOf = (file: string, name: string): Fields => {
  const text = read(file)
  const [, alias] = new RegExp(`\\bconst ${name} = (?:Schema\\.Struct\\()?(\\w+)\\)?\\n`).exec(text) ?? []
  const [, whole] = new RegExp(`\\bconst \\{[^}]*\\.\\.\\.${name} \\} = (\\w+)`).exec(text) ?? []
  const other = alias ?? whole
  if (other !== undefined) return fieldsOf(file, other)
  const body = new RegExp(`\\bconst ${name} = (?:Schema\\.Struct\\()?\\{\\n([^]*?)\\n\\}`).exec(text)?.[1]
  if (body === undefined) return importedFields(file, text, name)
  const fields = new Map<string, Field>()
  const entry =
    /^ {2}\.\.\.([\w.]+),$|(?:^ {2}\/\*\*\s+(?:\* )?((?:(?!\*\/)[^])*?)\s+\*\/\n)?^ {2}(\w+): ([^]*?),(?=\n {2}\S|$(?![^]))/gm
  for (const [, spread, comment, key, expression] of `${body}\n`.trimEnd().matchAll(entry)) {
    if (spread !== undefined) for (const [inherited, field] of fieldsOf(file, spread)) fields.set(inherited, field)
    else
      fields.set(key, { meaning: comment?.replace(/\s*\n\s*\* ?/g, " ") ?? fields.get(key)?.meaning, expression, file })
  }
  return fields
}

/** A named group of fields that other fields spread, such as `networkFields`. */
export interface Group {
  readonly name: string
  readonly file: string
  /** The keys that the spread leaves out. */
  readonly without: ReadonlyArray<string>
}

/** Reads the groups of fields that `const NAME = { …, }` or `const NAME = Schema.Struct({ … })` spreads, in order. */
export const groupsOf = (file: string, name: string): ReadonlyArray<Group> => {
  const text = read(file)
  const body = new RegExp(`\\bconst ${name} = (?:Schema\\.Struct\\()?\\{\\n([^]*?)\\n\\}`).exec(text)?.[1]
  if (body === undefined) {
    const [, whole] = new RegExp(`\\bconst ${name} = Schema\\.Struct\\((\\w+)\\)`).exec(text) ?? []
    return whole === undefined ? [] : [groupAt(file, whole)]
  }
  return [...body.matchAll(/^ {2}\.\.\.([\w.]+),$/gm)].map(([, spread]) => groupAt(file, spread))
}

/** Finds where a group is declared: in this file, in a file that it imports, or as the rest of another group. */
const groupAt = (file: string, name: string): Group => {
  const text = read(file)
  const [, left, whole] = new RegExp(`\\bconst \\{([^}]*)\\.\\.\\.${name} \\} = (\\w+)`).exec(text) ?? []
  if (whole !== undefined) {
    const without = [...left.matchAll(/(\w+)(?:: \w+)?,/g)].map(([, key]) => key)
    return { ...groupAt(file, whole), without }
  }
  if (new RegExp(`\\bconst ${name} = `).test(text)) return { name, file, without: [] }
  const imported = importOf(file, text, name)
  if (imported === undefined) throw new Error(`${file}: ${name} is neither declared nor imported`)
  const [from, member] = imported
  return groupAt(join(dirname(file), from), member)
}

/** Finds where a name comes from: `Learner.actorCriticFields` from an imported namespace, others by name. */
const importOf = (file: string, text: string, name: string): readonly [from: string, name: string] | undefined => {
  const [namespace, member] = name.split(".")
  const direct =
    member === undefined
      ? new RegExp(`(?:import|export) (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from "(\\.[^"]+)"`).exec(text)?.[1]
      : new RegExp(`import \\* as ${namespace} from "(\\.[^"]+)"`).exec(text)?.[1]
  const stars = [...text.matchAll(/^export \* from "(\.[^"]+)"/gm)].map(([, from]) => from)
  const from = direct ?? stars.find((star) => read(join(dirname(file), star)).includes(`const ${name} = `))
  return from === undefined ? undefined : [from, member ?? name]
}

const importedFields = (file: string, text: string, name: string): Fields => {
  const imported = importOf(file, text, name)
  if (imported === undefined) throw new Error(`${file}: there are no fields called ${name}`)
  const [from, member] = imported
  return fieldsOf(join(dirname(file), from), member)
}

export const meaningsOfFields = (fields: Fields): Meanings =>
  new Map([...fields].flatMap(([key, { meaning }]) => (meaning === undefined ? [] : [[key, meaning]])))

/** Reads the fields of the named Schema that a field nests, if there is one. */
export const nestedFields = ({ expression, file }: Field): Fields | undefined => {
  const name = /(?<![.\w])(?!Schema\b)([A-Z]\w+(?:\.[A-Z]\w+)?)\b(?!\.|\()/.exec(
    expression.replace(/"[^"]*"/g, ""),
  )?.[1]
  return name === undefined ? undefined : fieldsOf(file, name)
}
