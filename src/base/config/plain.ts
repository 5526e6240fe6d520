/**
 * Recognises plain objects, sets values in them, and converts the case of keys. It has no imports, since the web page
 * loads it.
 */

/** An object that only has data, such as a section of a config. */
export type Plain = { readonly [key: string]: unknown }

/** Tells whether a value is an object as JSON and YAML have them, not an array or an instance of a class. */
export const isPlain = (value: unknown): value is Plain =>
  typeof value === "object" &&
  value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)

/** Converts a key to camelCase: `num_envs` to `numEnvs`, `lambda_` to `lambda`. Keys that begin with `_` are kept. */
export const camelCase = (key: string): string =>
  key.startsWith("_")
    ? key
    : key.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()).replace(/_+$/, "")

/** Converts a key to snake_case. Keys that begin with an underscore, such as `_tag`, are kept. */
export const snakeCase = (key: string): string =>
  key.startsWith("_") ? key : key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The only section of a config whose keys are names that the user chose, not settings. */
const named = "runs"

/** The keys whose sections hold data, not settings: the records of a data set, and the texts of an agent by their names. */
const dataKeys: ReadonlySet<string> = new Set(["items", "texts"])

/** The sections whose keys are the names of runs or agents, which may be those of `dataKeys`. */
const namesOf: ReadonlySet<string> = new Set([named, "agents"])

/** Tells whether the section at a path, or at the beginning of it that ends at `at`, holds data, whose keys stay as they are. */
export const holdsData = (path: ReadonlyArray<string>, at = path.length - 1): boolean =>
  dataKeys.has(path[at]) && !namesOf.has(path[at - 1])

/**
 * Converts the keys of a path in a config, except the name of a run, and the keys in data: `runs.my_run.max_steps` to
 * `runs.my_run.maxSteps`.
 */
export const convertPath = (path: ReadonlyArray<string>, convert: (key: string) => string): ReadonlyArray<string> => {
  const data = path.findIndex((_, at) => holdsData(path, at))
  const isName = (at: number): boolean => (at === 1 && path[0] === named) || (data >= 0 && at > data)
  return path.map((key, at) => (isName(at) ? key : convert(key)))
}

/** Returns a copy of a tree with a value at a path. Sections that the tree lacks are added. */
export const setIn = (tree: Plain, path: ReadonlyArray<string>, value: unknown): Plain => {
  const [key, ...rest] = path
  return { ...tree, [key]: setBelow(tree[key], rest, value) }
}

/**
 * Sets a value at a path below `child`. If `child` is a list, a number in the path is the index of an item. With an index that
 * the list lacks, the whole list becomes a section.
 */
const setBelow = (child: unknown, path: ReadonlyArray<string>, value: unknown): unknown => {
  if (path.length === 0) return value
  const [key, ...rest] = path
  const items: ReadonlyArray<unknown> = Array.isArray(child) && /^\d+$/.test(key) ? child : []
  const at = Number(key)
  return at < items.length
    ? items.with(at, setBelow(items[at], rest, value))
    : setIn(isPlain(child) ? child : {}, path, value)
}
