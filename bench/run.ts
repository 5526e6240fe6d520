/**
 * `npm run bench`: runs the benchmarks of `bench/benches/` and prints a table. Each runs in a process of its own, so
 * that the compiler's optimisations for one don't affect the next.
 */
import { fork } from "node:child_process"
import { readdirSync } from "node:fs"
import { availableParallelism, cpus } from "node:os"
import { parseArgs } from "node:util"
import { compare, variableOf } from "./against.ts"
import type { Bench, Measurement } from "./Bench.ts"

const help = `Measures effect-rl.

  npm run bench                              all of it, as a table
  npm run bench -- --only NAME[,NAME …]      only these
  npm run bench -- --list                    their names, and what they measure
  npm run bench -- --json                    the last line is {"results":[{"name","value","unit"}]}
  npm run bench -- --against NAME=VALUE      each with and without that environment variable, in alternation, and the ratio
                   [--rounds N]              how often each of the two is measured; 3 when left out

Examples: npm run bench -- --only gae-128x1024 --json
          npm run bench -- --only sac-pendulum-rltools --against EFFECT_RL_WIDE=0`

/** Prints a problem with the command line in one line, and ends the process. */
const misused = (message: string): never => {
  console.error(`bench: ${message}`)
  process.exit(2)
}

const options = (() => {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true },
        json: { type: "boolean", default: false },
        against: { type: "string", multiple: true, default: [] },
        rounds: { type: "string", default: "3" },
        list: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values
  } catch (error) {
    return misused(`${error instanceof Error ? error.message : error} (see --help)`)
  }
})()

const against = Object.fromEntries(
  options.against.map(
    (text) => variableOf(text) ?? misused(`--against ${text}: expected an environment variable, NAME=VALUE`),
  ),
)
const rounds = /^[1-9]\d{0,3}$/.test(options.rounds)
  ? Number(options.rounds)
  : misused(`--rounds ${options.rounds}: expected a whole number from 1 to 9999`)

const folder = new URL("./benches/", import.meta.url)

/** Loads all benchmarks, each with the name of its file. A file may define several benchmarks. */
const load = async (): Promise<ReadonlyArray<{ readonly bench: Bench; readonly file: string }>> => {
  const benches: Array<{ readonly bench: Bench; readonly file: string }> = []
  for (const name of readdirSync(folder).sort()) {
    const file = new URL(name, folder).href
    const { default: exported }: { readonly default?: Bench | ReadonlyArray<Bench> } = await import(file)
    if (exported === undefined) return misused(`benches/${name}: expected a default export`)
    for (const bench of [exported].flat()) benches.push({ bench, file })
  }
  return benches
}

/** Runs a benchmark in a process of its own, with these additional environment variables. */
const measure = (name: string, file: string, variables: Readonly<Record<string, string>> = {}): Promise<Measurement> =>
  new Promise((resolve, reject) => {
    const child = fork(new URL("./one.ts", import.meta.url), [file, name], {
      stdio: ["ignore", 2, 2, "ipc"],
      env: { ...process.env, ...variables },
    })
    let measured: Measurement | undefined
    child.on("message", (message: Measurement) => (measured = message))
    child.on("error", reject)
    child.on("exit", (code, signal) => {
      if (measured !== undefined) resolve(measured)
      else reject(new Error(`${name} ended with ${signal ?? code} before it sent a result`))
    })
  })

const shown = (value: number): string =>
  value.toLocaleString("en-GB", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 6 : 4 })

const row = ({ name, unit }: Bench, { value, details = {} }: Measurement): ReadonlyArray<string> => [
  name,
  shown(value),
  unit,
  Object.entries(details)
    .map(([key, detail]) => `${key} ${typeof detail === "number" ? shown(detail) : detail}`)
    .join(", "),
]

/** Measures the benchmark with and without the environment variables that `--against` lists. */
const measureAgainst = async (bench: Bench, file: string): Promise<Measurement & Pick<Result, "against">> => {
  const one = (other: boolean) => measure(bench.name, file, other ? against : {})
  const { value, ratios, ...other } = await compare(rounds, bench, async (side) => (await one(side)).value)
  return {
    value,
    against: { variables: against, value: other.against, ratio: other.ratio, ratios },
    details: {
      [`with ${options.against.join(" ")}`]: other.against,
      "times as fast": other.ratio,
      [`in ${rounds} rounds from`]: `${shown(Math.min(...ratios))} to ${shown(Math.max(...ratios))}`,
    },
  }
}

interface Result {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly against?: {
    readonly variables: Readonly<Record<string, string>>
    readonly value: number
    readonly ratio: number
    readonly ratios: ReadonlyArray<number>
  }
}

const main = async (): Promise<void> => {
  const all = await load()
  const names = all.map(({ bench }) => bench.name)
  const wanted = options.only?.flatMap((list) => list.split(",")).filter((name) => name !== "") ?? names
  const unknown = wanted.find((name) => !names.includes(name))
  if (unknown !== undefined) misused(`--only: unknown benchmark "${unknown}"; expected one of ${names.join(", ")}`)
  const benches = wanted.flatMap((name) => all.filter(({ bench }) => bench.name === name))
  const nameWidth = Math.max(0, ...wanted.map((name) => name.length))
  if (options.list) {
    for (const {
      bench: { name, unit, about },
    } of benches)
      console.log(`${name.padEnd(nameWidth)}  ${about} (${unit})`)
    return
  }

  const print = options.json ? console.error : console.log
  print(`Node ${process.versions.node}, ${cpus()[0]?.model ?? process.arch}, ${availableParallelism()} cores\n`)
  const unitWidth = Math.max(...benches.map(({ bench }) => bench.unit.length))
  const results: Array<Result> = []
  for (const { bench, file } of benches) {
    try {
      const measured = options.against.length > 0 ? await measureAgainst(bench, file) : await measure(bench.name, file)
      const [name, value, unit, details] = row(bench, measured)
      print(`${name.padEnd(nameWidth)}  ${value.padStart(11)} ${unit.padEnd(unitWidth)}  ${details}`.trimEnd())
      const { details: _, ...figures } = measured
      results.push({ name: bench.name, unit: bench.unit, ...figures })
    } catch (error) {
      print(
        `${bench.name.padEnd(nameWidth)}  ${"failed".padStart(11)} ${error instanceof Error ? error.message : error}`,
      )
      process.exitCode = 1
    }
  }
  if (options.json) console.log(JSON.stringify({ results }))
}

if (options.help) console.log(help)
else await main()
