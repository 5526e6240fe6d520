/**
 * Determines the subset and split of each file of a data set on the hub, and parses expressions such as `train[:100]`. The
 * README of a data set may list the files of its subsets; otherwise the names of the files decide. These are pure functions.
 */
import { Glob, Option, Schema } from "effect"
import type { HubFile, HubInfo } from "./client.ts"
import { isReadable } from "./rows.ts"

/** Maps the name of each split to its files, in order. */
type Splits = ReadonlyMap<string, ReadonlyArray<HubFile>>

const Patterns = Schema.Union([Schema.String, Schema.Array(Schema.String)])
const Card = Schema.Struct({
  configs: Schema.Array(
    Schema.Struct({
      config_name: Schema.String,
      default: Schema.optional(Schema.Boolean),
      data_dir: Schema.optional(Schema.String),
      data_files: Schema.optional(
        Schema.Union([Patterns, Schema.Array(Schema.Struct({ split: Schema.String, path: Patterns }))]),
      ),
    }),
  ),
})
type Subset = (typeof Card.Type)["configs"][number]
const decodeCard = Schema.decodeUnknownOption(Card)

/** The words in the names of files and folders that identify their split. */
const keywords: ReadonlyArray<readonly [split: string, words: RegExp]> = [
  ["train", /(?:^|[^a-z])train(?:ing)?(?:$|[^a-z])/i],
  ["validation", /(?:^|[^a-z])(?:validation|valid|dev|val)(?:$|[^a-z])/i],
  ["test", /(?:^|[^a-z])(?:test(?:ing)?|eval(?:uation)?)(?:$|[^a-z])/i],
]

/** Matches `data/SPLIT-00000-of-00001.parquet`, and `SUBSET/SPLIT/0000.parquet` of the hub's own conversion. */
const sharded = /(?:^|\/)(\w[\w.]*)-\d{5}-of-\d{5}(?:-[^/]*)?\.[^/]+$/
const converted = /(?:^|\/)(\w[\w.-]*)\/\d{4}\.parquet$/

const splitIn = (path: string): string | undefined =>
  sharded.exec(path)?.[1] ??
  converted.exec(path)?.[1] ??
  // The name of the file has priority over the name of its folder.
  keywords.find(([, words]) => words.test(path.replace(/^.*\//, "")))?.[0] ??
  keywords.find(([, words]) => words.test(path))?.[0]

const byPath = (a: HubFile, b: HubFile): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

const splitsByName = (files: ReadonlyArray<HubFile>): Splits => {
  const splits = new Map<string, Array<HubFile>>()
  const named = files.filter(({ path }) => splitIn(path) !== undefined)
  for (const file of (named.length > 0 ? named : files).toSorted(byPath)) {
    const split = splitIn(file.path) ?? "train"
    const files = splits.get(split)
    if (files === undefined) splits.set(split, [file])
    else files.push(file)
  }
  return splits
}

const within = (files: ReadonlyArray<HubFile>, folder: string): ReadonlyArray<HubFile> => {
  const prefix = `${folder.replace(/^(?:\.?\/)+|(?<!\/)\/+$/g, "")}/`
  return prefix === "/" ? files : files.filter(({ path }) => path.startsWith(prefix))
}

const matching = (files: ReadonlyArray<HubFile>, patterns: typeof Patterns.Type): ReadonlyArray<HubFile> => {
  const globs = (typeof patterns === "string" ? [patterns] : patterns).map((pattern) => Glob.make(pattern))
  return files.filter(({ path }) => globs.some((glob) => Glob.match(glob, path))).toSorted(byPath)
}

const splitsOfSubset = (all: ReadonlyArray<HubFile>, { data_dir, data_files }: Subset): Splits => {
  const files = data_dir === undefined ? all : within(all, data_dir)
  if (data_files === undefined) return splitsByName(files)
  const at = (pattern: string) => (data_dir === undefined ? pattern : `${data_dir.replace(/\/+$/, "")}/${pattern}`)
  const placed = (patterns: typeof Patterns.Type) =>
    typeof patterns === "string" ? at(patterns) : patterns.map((pattern) => at(pattern))
  if (typeof data_files === "string") return new Map([["train", matching(all, at(data_files))]])
  const splits = new Map<string, ReadonlyArray<HubFile>>()
  const ofTrain: Array<string> = []
  for (const part of data_files) {
    if (typeof part === "string") ofTrain.push(at(part))
    else splits.set(part.split, [...(splits.get(part.split) ?? []), ...matching(all, placed(part.path))])
  }
  if (ofTrain.length > 0) splits.set("train", matching(all, ofTrain))
  return splits
}

const quoted = (names: Iterable<string>): string => [...names].map((name) => `"${name}"`).join(", ")

/** A problem, and the key of the config in which it is. */
export interface Problem {
  readonly key: "hfDataset" | "hfSubset" | "split"
  readonly problem: string
}

/** Returns the splits of a subset; of the data set's default subset if `subset` is null. */
export const splitsOf = ({ files: all, card }: HubInfo, subset: string | null): Splits | Problem => {
  const files = all.filter(({ path }) => isReadable(path) && !/(?:^|\/)[._]/.test(path))
  if (files.length === 0) {
    const kinds = "expected .parquet, .jsonl, .json, .csv or .tsv"
    return { key: "hfDataset", problem: `it has no file that can be read; ${kinds}, found ${shownNames(all)}` }
  }
  const configs = Option.match(decodeCard(card), { onNone: () => [], onSome: (decoded) => decoded.configs })
  const unknown = (names: ReadonlyArray<string>, found: string): Problem => ({
    key: "hfSubset",
    problem: `expected one of the subsets ${quoted(names)}, found ${found}`,
  })
  if (configs.length > 0) {
    const names = configs.map(({ config_name }) => config_name)
    const chosen =
      subset === null
        ? (configs.find((one) => one.default === true) ??
          configs.find((one) => one.config_name === "default") ??
          (configs.length === 1 ? configs[0] : undefined))
        : configs.find(({ config_name }) => config_name === subset)
    return chosen === undefined
      ? unknown(names, subset === null ? "none" : `"${subset}"`)
      : splitsOfSubset(files, chosen)
  }
  // In the hub's own conversion, the folders are the subsets.
  const folders = [...new Set(files.map(({ path }) => /^([^/]+)\/[^/]+\/\d{4}\.parquet$/.exec(path)?.[1]))]
  const isConverted = folders.every((folder) => folder !== undefined)
  const folder = subset ?? (isConverted && !folders.includes("default") && folders.length === 1 ? folders[0] : null)
  if (folder !== null && folder !== undefined) {
    const own = within(files, folder)
    if (own.length > 0) return splitsByName(own)
    if (folder === "default") return splitsByName(files)
    return unknown([...new Set(files.map(({ path }) => /^([^/]+)\//.exec(path)?.[1] ?? "default"))], `"${folder}"`)
  }
  if (!isConverted) return splitsByName(files)
  return folders.includes("default")
    ? splitsByName(within(files, "default"))
    : unknown(
        folders.filter((name) => name !== undefined),
        "none",
      )
}

const shownNames = (files: ReadonlyArray<HubFile>): string =>
  files.length === 0
    ? "no file"
    : `${quoted(files.slice(0, 5).map(({ path }) => path))}${files.length > 5 ? ", …" : ""}`

/** A bound of a slice: a number of records, or a percentage of them. Negative bounds count from the end. */
interface Bound {
  readonly value: number
  readonly isPercent: boolean
}

/** A part of an expression: a split, or a slice of it. */
export interface SplitPart {
  readonly split: string
  readonly from: Bound | null
  readonly to: Bound | null
}

const partForm = /^\s*(\w[\w.-]*)\s*(?:\[\s*(-?\d+%?)?\s*:\s*(-?\d+%?)?\s*\])?\s*$/

const boundOf = (text: string | undefined): Bound | null =>
  text === undefined ? null : { value: Number.parseInt(text, 10), isPercent: text.endsWith("%") }

/**
 * Parses an expression for records of splits: `train`, `train[:100]`, `train[10%:20%]`, `train[-50:]`, or a sum such as
 * `train+test[:10]`. Returns the problem if it is not valid.
 */
export const partsOf = (expression: string): ReadonlyArray<SplitPart> | Problem => {
  const parts: Array<SplitPart> = []
  for (const text of expression.split("+")) {
    const [, split, from, to] = partForm.exec(text) ?? []
    if (split === undefined) {
      const problem = `expected a split such as train, train[:100] or train[:10%]+test, found "${expression}"`
      return { key: "split", problem }
    }
    parts.push({ split, from: boundOf(from), to: boundOf(to) })
  }
  return parts
}

/** Returns the first record of a part, and the one after its last, in a split of `size` records. */
export const rangeOf = ({ from, to }: SplitPart, size: number): readonly [from: number, to: number] => {
  const at = (bound: Bound | null, usual: number): number => {
    if (bound === null) return usual
    const value = bound.isPercent ? Math.round((bound.value * size) / 100) : bound.value
    return Math.min(size, Math.max(0, value < 0 ? size + value : value))
  }
  const start = at(from, 0)
  return [start, Math.max(start, at(to, size))]
}
