/**
 * Converts between the identifier of a run and the path of its folder, in both directions. These are pure functions.
 *
 * The usual layout of paths is that of the library RLtools: `{TIME}/{COMMIT}_{NAME}_{POPULATION}/{CONFIG}/{SEED}`. Here,
 * `{POPULATION}` has the names of the settings that vary between runs, and `{CONFIG}` has their values in the same order. The
 * flat layout is `{YYYYMMDD_HHMMSS}`.
 *
 * @example
 * ```ts
 * toPath({ time: "2026-01-31_12-00-00", commit: "0123abc", name: "tune", population: { num_envs: "8" }, seed: 7 })
 * // 2026-01-31_12-00-00/0123abc_tune_num-envs/8/0007
 * ```
 */

/** The facts that determine the path of a run's folder. */
export interface Identifier extends RunIdentity {
  /** `YYYY-MM-DD_HH-MM-SS`, in UTC. */
  readonly time: string
  /** Seven hex digits, or `no-hash` outside of git. */
  readonly commit: string
}

/** The part of an identifier that is known before the run starts. */
export interface RunIdentity {
  readonly name: string
  /** The settings that vary between runs, with the values of this run. */
  readonly population: Readonly<Record<string, string>>
  readonly seed: number
}

/**
 * Escapes a part of a path: special characters are written as an equals sign and two hex digits. These are underscores and
 * slashes, which separate parts and folders, and ASCII characters that a file system forbids or that have a meaning in a URL
 * or a shell. An empty part is written as `=`.
 */
const escape = (text: string): string =>
  text === ""
    ? "="
    : text.replace(
        /[^A-Za-z0-9.,@~+\-\u0080-\uffff]|^[.~]|\.$/g,
        (character) => `=${character.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
      )

const unescape = (text: string): string =>
  text === "="
    ? ""
    : text.replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** Escapes the name of a setting. Such names have many underscores and few dashes, so `_` becomes `-`, and `-` is escaped. */
const escapeVariable = (text: string): string => escape(text).replaceAll("-", "=2D").replaceAll("=5F", "-")

const unescapeVariable = (text: string): string => unescape(text.replaceAll("-", "=5F"))

/** Converts the name of a file, an agent's type or a data set to a run's name: underscores become dashes. */
export const derivedName = (text: string): string => text.replaceAll("_", "-")

/** Compares two names, where `_` equals `-`: the file `my_config.yaml` makes runs with the name `my-config`. */
export const isSameName = (one: string, other: string): boolean => derivedName(one) === derivedName(other)

/** The name of the folder `{CONFIG}` in a run's path if no setting varies between runs. */
const nothingVaries = "-"

/** Returns the path of a run's folder, relative to the results folder. */
export const toPath = ({ time, commit, name, population, seed }: Identifier): string => {
  const variables = Object.keys(population)
  const heading = [escape(commit), escape(name), ...variables.map(escapeVariable)].join("_")
  const values = variables.map((variable) => escape(population[variable])).join("_")
  // If one setting varies and its value is a dash, escape it: the name `-` means that no setting varies.
  const config = variables.length === 0 ? nothingVaries : values === nothingVaries ? "=2D" : values
  const digits = String(Math.abs(seed)).padStart(4, "0")
  return [time, heading, config, seed < 0 ? `-${digits}` : digits].join("/")
}

/** Reads the identifier from the path of a run, which may start with other folders; undefined for any other path. */
export const fromPath = (path: string): Identifier | undefined => {
  const [time, heading, config, seed] = path.replace(/\/+$/, "").split("/").slice(-4)
  if (seed === undefined || !/^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$/.test(time) || !/^-?\d{4,}$/.test(seed)) return undefined
  const [commit, name, ...variables] = heading.split("_")
  const values = variables.length === 0 && config === nothingVaries ? [] : config.split("_")
  if (name === undefined || values.length !== variables.length) return undefined
  return {
    time,
    commit: unescape(commit),
    name: unescape(name),
    population: Object.fromEntries(
      variables.map((variable, index) => [unescapeVariable(variable), unescape(values[index])]),
    ),
    seed: Number(seed),
  }
}

/** Formats a time for an identifier: `YYYY-MM-DD_HH-MM-SS`, in UTC. */
export const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace("T", "_").replaceAll(":", "-")

/** Parses the time of an identifier; undefined for any other text. */
export const dateOf = (time: string): Date | undefined => {
  const [, day, hours, minutes, seconds] = /^(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)$/.exec(time) ?? []
  const date = new Date(`${day}T${hours}:${minutes}:${seconds}Z`)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** Returns the path of a run in the flat layout, which has only its time. */
export const toFlatPath = ({ time }: { readonly time: string }): string => time.replaceAll("-", "")

/** Reads the time from a path in the flat layout, which may start with other folders; undefined for any other path. */
export const fromFlatPath = (path: string): { readonly time: string } | undefined => {
  const match = /(?:^|\/)(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)\/*$/.exec(path)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second] = match
  return { time: `${year}-${month}-${day}_${hour}-${minute}-${second}` }
}

/** The prefix of the folders of runs in the folder of a multi-run trainer. */
const childPrefix = "run_"

/** Tells whether a name is the folder of a trainer's run. The whole name is the run's id, even with dots: `run_a.b`. */
export const isChildName = (name: string): boolean => name.length > childPrefix.length && name.startsWith(childPrefix)
/** Returns the name of the folder of a run, from the run's name in the trainer's config. */
export const childOf = (name: string): string => `${childPrefix}${name}`
/** Returns the name of a run in the trainer's config, from the name of its folder. */
export const childNameOf = (folder: string): string => folder.slice(childPrefix.length)
