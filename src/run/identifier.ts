/**
 * Where a run lives, as pure pairs of functions between an identifier and its path.
 *
 * RLtools' layout is `{TIME}/{COMMIT}_{NAME}_{POPULATION}/{CONFIG}/{SEED}`: the population is the names of what varies
 * between runs, the config their values in the same order. The flat layout is `{YYYYMMDD_HHMMSS}`.
 *
 * @example
 * ```ts
 * toPath({ time: "2026-01-31_12-00-00", commit: "0123abc", name: "tune", population: { num_envs: "8" }, seed: 7 })
 * // 2026-01-31_12-00-00/0123abc_tune_num-envs/8/0007
 * ```
 */
export interface Identifier {
  /** `YYYY-MM-DD_HH-MM-SS`, in UTC. */
  readonly time: string
  /** Seven hex digits, or `no-hash` outside of git. */
  readonly commit: string
  readonly name: string
  /** Variable → value. */
  readonly population: Readonly<Record<string, string>>
  readonly seed: number
}

/**
 * Underscores join the parts and slashes the folders, so within a part both are written as an equals sign and two hex
 * digits, as is all of ASCII that some file system cannot have in a name, or that means something else in a URL or a
 * shell. Nothing at all is a lone equals sign.
 */
const escape = (text: string): string =>
  text === ""
    ? "="
    : text.replace(
        /[^A-Za-z0-9.,@~+\-\u0080-\uffff]|^[.~]|\.$/g,
        (found) => `=${found.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
      )

const unescape = (text: string): string =>
  text === "="
    ? ""
    : text.replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/**
 * Variables are settings, which have many underscores and no dashes: they are written as dashes, and a dash is escaped.
 * Names and values are other people's, and have both.
 */
const escapeVariable = (text: string): string => escape(text).replaceAll("-", "=2D").replaceAll("=5F", "-")

const unescapeVariable = (text: string): string => unescape(text.replaceAll("-", "=5F"))

/** A name that is derived, of a file, an agent's type or a data set, as identifiers have it: without underscores. */
export const derivedName = (text: string): string => text.replaceAll("_", "-")

/** Whether two names are the same but for underscores and dashes: people know a derived name as its origin writes it. */
export const isSameName = (one: string, other: string): boolean => derivedName(one) === derivedName(other)

/** What stands for the values where nothing varies. */
const nothingVaries = "-"

export const toPath = ({ time, commit, name, population, seed }: Identifier): string => {
  const variables = Object.keys(population)
  const heading = [escape(commit), escape(name), ...variables.map(escapeVariable)].join("_")
  const values = variables.map((variable) => escape(population[variable])).join("_")
  // A single value that is that very dash must not be taken for it.
  const config = variables.length === 0 ? nothingVaries : values === nothingVaries ? "=2D" : values
  const digits = String(Math.abs(seed)).padStart(4, "0")
  return [time, heading, config, seed < 0 ? `-${digits}` : digits].join("/")
}

/** The identifier of a run's path, which may have folders before it; undefined where it is none. */
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

/** A moment as the identifier writes it. */
export const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace("T", "_").replaceAll(":", "-")

/** The other way round; undefined where it is no such time. */
export const dateOf = (time: string): Date | undefined => {
  const [, day, hours, minutes, seconds] = /^(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)$/.exec(time) ?? []
  const date = new Date(`${day}T${hours}:${minutes}:${seconds}Z`)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** The flat layout: one folder a run, which says only when it started. */
export const toFlatPath = ({ time }: { readonly time: string }): string => time.replaceAll("-", "")

/** The time of a flat path, which may have folders before it, as an identifier has it; undefined where it is none. */
export const fromFlatPath = (path: string): { readonly time: string } | undefined => {
  const match = /(?:^|\/)(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)\/*$/.exec(path)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second] = match
  return { time: `${year}-${month}-${day}_${hour}-${minute}-${second}` }
}
