/**
 * Where a run lives: `{TIME}/{COMMIT}_{NAME}_{POPULATION}/{CONFIG}/{SEED}`, as RLtools lays runs out. The population
 * is the names of what varies between runs, the config their values in the same order.
 *
 * @example
 * ```ts
 * toPath({ time: "2026-01-31_12-00-00", commit: "0123abc", name: "tune", population: { algorithm: "ppo" }, seed: 7 })
 * // 2026-01-31_12-00-00/0123abc_tune_algorithm/ppo/0007
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

/** Underscores join the parts, slashes the folders: within a part both are written as percent and two hex digits. */
const escape = (text: string): string =>
  text.replace(/[%_/\\\u0000-\u001f]|^\.|^$/g, (found) =>
    found === "" ? "%" : `%${found.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
  )

const unescape = (text: string): string =>
  text === "%" ? "" : text.replace(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

export const toPath = ({ time, commit, name, population, seed }: Identifier): string => {
  const variables = Object.keys(population)
  const heading = [commit, escape(name), ...variables.map(escape)].join("_")
  const config = variables.length === 0 ? "-" : variables.map((variable) => escape(population[variable])).join("_")
  return [time, heading, config === "-" && variables.length > 0 ? "%2D" : config, String(seed).padStart(4, "0")].join("/")
}

/** The identifier of a run's path, which may have folders before it; undefined where it is none. */
export const fromPath = (path: string): Identifier | undefined => {
  const [time, heading, config, seed] = path.split("/").slice(-4)
  if (seed === undefined || !/^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$/.test(time) || !/^-?\d+$/.test(seed)) return undefined
  const [commit, name, ...variables] = heading.split("_")
  const values = config === "-" && variables.length === 0 ? [] : config.split("_")
  if (name === undefined || values.length !== variables.length) return undefined
  return {
    time,
    commit,
    name: unescape(name),
    population: Object.fromEntries(variables.map((variable, index) => [unescape(variable), unescape(values[index])])),
    seed: Number(seed),
  }
}

/** A moment as the identifier writes it. */
export const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace("T", "_").replaceAll(":", "-")

/** The other layout: one folder a run, `YYYYMMDD_HHMMSS`. */
export const flatTimeOf = (date: Date): string => timeOf(date).replaceAll("-", "")
