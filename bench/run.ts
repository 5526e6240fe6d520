/**
 * `npm run bench`: runs the benchmarks of `bench/benches/` and prints a table. Each runs in a process of its own, so
 * that the compiler's optimisations for one don't affect the next.
 */
import { readdirSync } from "node:fs"
import { availableParallelism, cpus } from "node:os"
import { parseArgs } from "node:util"
import { compare, type Comparison, variableOf } from "./against.ts"
import { type BackendName, backendNames } from "effect-rl/node"
import type { Bench, Measurement } from "./Bench.ts"
import { backendNamed, backendVariable } from "./chosenBackend.ts"
import { kernelsVariable } from "./kernels.ts"
import { gigaflops, limitOf } from "./limit.ts"
import { failureOf, measure, type Place, valueOf } from "./measuring.ts"
import { type Peer, peers, peersFolder } from "./peers/peers.ts"
import { withRevision } from "./revisions.ts"

const help = `Measures effect-rl.

  npm run bench                              all of it, as a table
  npm run bench -- --only NAME[,NAME …]      only these
  npm run bench -- --list                    their names, and what they measure
  npm run bench -- --json                    the last line is {"results":[{"name","value","unit"}]}
  npm run bench -- --kernels                 with the seconds that each WebAssembly kernel ran
  npm run bench -- --against NAME=VALUE      with and without that environment variable
  npm run bench -- --against peers           against the programs of other projects (bench/PEERS.md says how to get them)
  npm run bench -- --compare REV [REV]       this folder, or the second revision of git, against the first
                   [--backend NAME,…]        on each of these backends, such as wasm,native; auto when left out
                   [--rounds N]              how often each of the two is measured, in alternation; 3 when left out
                   [--pin CPUS]              on these processors only, as taskset takes them; 0 for peers when left out

Examples: npm run bench -- --only gae-128x1024 --json
          npm run bench -- --only sac-pendulum-rltools --against EFFECT_RL_WIDE=0
          npm run bench -- --only ppo-cartpole-cleanrl --compare main~10 --rounds 5
          npm run bench -- --only ppo-pendulum-rltools --backend wasm,native --against peers`

/** Prints a problem with the command line in one line, and ends the process. */
const misused = (message: string): never => {
  console.error(`bench: ${message}`)
  process.exit(2)
}

const parsed = (() => {
  const args = process.argv.slice(2)
  // `--against` alone means the peers.
  const isBare = (at: number): boolean => args[at] === "--against" && (args[at + 1] ?? "-").startsWith("-")
  try {
    return parseArgs({
      args: args.map((arg, at) => (isBare(at) ? "--against=peers" : arg)),
      allowPositionals: true,
      options: {
        only: { type: "string", multiple: true },
        json: { type: "boolean", default: false },
        kernels: { type: "boolean", default: false },
        against: { type: "string", multiple: true, default: [] },
        compare: { type: "string" },
        rounds: { type: "string", default: "3" },
        pin: { type: "string" },
        backend: { type: "string" },
        list: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    })
  } catch (error) {
    return misused(`${error instanceof Error ? error.message : error} (see --help)`)
  }
})()
const { values: options, positionals } = parsed
if (positionals.length > (options.compare === undefined ? 0 : 1))
  misused(`unexpected argument "${positionals.at(-1)}" (see --help)`)

const withPeers = options.against.includes("peers")
const variables = Object.fromEntries(
  options.against
    .filter((text) => text !== "peers")
    .map(
      (text) =>
        variableOf(text) ?? misused(`--against ${text}: expected an environment variable, NAME=VALUE, or peers`),
    ),
)
const withVariables = Object.keys(variables).length > 0
const asked = [withPeers, withVariables, options.compare !== undefined].filter(Boolean).length
if (asked > 1) misused("expected only one of --against NAME=VALUE, --against peers and --compare")
const isComparison = asked > 0
const rounds = /^[1-9]\d{0,3}$/.test(options.rounds)
  ? Number(options.rounds)
  : misused(`--rounds ${options.rounds}: expected a whole number from 1 to 9999`)

/** The processors that all processes are kept on; all when undefined. */
const pin = (() => {
  const wanted = options.pin ?? (withPeers ? "0" : undefined)
  const failure = wanted === undefined ? undefined : failureOf("taskset", "-c", wanted, "true")
  if (failure === undefined) return wanted
  if (options.pin !== undefined) misused(`--pin ${wanted}: ${failure}`)
  return undefined
})()

/** The backends on which the benchmarks run; undefined for the one that each chooses itself. */
const backends: ReadonlyArray<BackendName | undefined> = options.backend?.split(",").map((name) => {
  const known = backendNamed(name)
  return known ?? misused(`--backend ${name}: expected one of ${backendNames.join(", ")}`)
}) ?? [undefined]

const folder = new URL("./benches/", import.meta.url)

/** Loads all benchmarks, each with the name of its file. A file may define several benchmarks. */
const load = async (): Promise<ReadonlyArray<{ readonly bench: Bench; readonly file: string }>> => {
  const benches: Array<{ readonly bench: Bench; readonly file: string }> = []
  for (const name of readdirSync(folder).sort()) {
    const { default: exported }: { readonly default?: Bench | ReadonlyArray<Bench> } = await import(
      new URL(name, folder).href
    )
    if (exported === undefined) return misused(`benches/${name}: expected a default export`)
    for (const bench of [exported].flat()) benches.push({ bench, file: name })
  }
  return benches
}

const shown = (value: number): string =>
  value.toLocaleString("en-GB", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 6 : 4 })

const row = ({ unit }: Bench, { value, details = {} }: Measurement): ReadonlyArray<string> => [
  shown(value),
  unit,
  Object.entries(details)
    .map(([key, detail]) => `${key} ${typeof detail === "number" ? shown(detail) : detail}`)
    .join(", "),
]

interface Figures {
  readonly value: number
  readonly against?: Comparison & { readonly name: string }
}

interface Result extends Figures {
  readonly name: string
  readonly unit: string
}

/** Returns the environment variables with which a benchmark runs on a backend. Machine code is measured from the start on. */
const onBackend = (backend: BackendName | undefined): Readonly<Record<string, string>> => ({
  ...(backend !== undefined && { [backendVariable]: backend }),
  ...(backend === "native" && { EFFECT_RL_NATIVE: "wait" }),
})

/** Returns the name of a benchmark in the table. */
const nameOn = ({ name }: Bench, backend: BackendName | undefined): string =>
  backend === undefined ? name : `${name} on ${backend}`

/** The other side of a comparison: a program, a revision, or an environment. */
interface Rival {
  readonly name: string
  readonly measure: () => Promise<number>
}

/** The folders of the revisions that are compared. Without one, the folder of this file is meant. */
interface Revisions {
  readonly own?: string
  readonly other?: string
}

/** Lists what a benchmark is compared with; empty if nothing was asked for. */
const rivalsOf = (
  { name }: Bench,
  file: string,
  { other }: Revisions,
  backend: BackendName | undefined,
): ReadonlyArray<Rival> => {
  const measureIn = async ({ variables = {}, ...place }: Place): Promise<number> =>
    (await measure(name, file, { ...place, variables: { ...onBackend(backend), ...variables }, pin })).value
  if (other !== undefined) return [{ name: `${options.compare}`, measure: () => measureIn({ root: other }) }]
  if (withVariables) return [{ name: `with ${options.against.join(" ")}`, measure: () => measureIn({ variables }) }]
  return peersOf(name).flatMap((peer) => {
    const command = peer.find(peersFolder())
    if (typeof command !== "string") return [{ name: peer.name, measure: () => valueOf(command, pin) }]
    console.error(`${name}: ${peer.name} is left out: ${command} (see bench/PEERS.md)`)
    return []
  })
}

const peersOf = (bench: string): ReadonlyArray<Peer> => (withPeers ? peers.filter((peer) => peer.bench === bench) : [])

/** Measures a benchmark and its rival in alternation. */
const measureAgainst = async (
  bench: Bench,
  own: () => Promise<Measurement>,
  rival: Rival,
): Promise<Figures & Measurement> => {
  const found = await compare(rounds, bench, async (isRival) => (isRival ? rival.measure() : (await own()).value))
  const [low, high] = found.interval
  return {
    value: found.value,
    against: { name: rival.name, ...found },
    details: { [rival.name]: found.against, "times as fast": `${shown(found.ratio)} [${shown(low)}; ${shown(high)}]` },
  }
}

/** Adds to a measurement which share of the machine's limit its products reached. */
const withShare = (measured: Measurement, limit: number | undefined): Measurement => {
  const speed = measured.details?.[gigaflops]
  if (limit === undefined || typeof speed !== "number") return measured
  return { ...measured, details: { ...measured.details, "% of a core's limit": Math.round((100 * speed) / limit) } }
}

const main = async (revisions: Revisions): Promise<void> => {
  const all = await load()
  const names = all.map(({ bench }) => bench.name)
  const offered = withPeers ? names.filter((name) => peersOf(name).length > 0) : names
  const wanted = options.only?.flatMap((list) => list.split(",")).filter((name) => name !== "") ?? offered
  const unknown = wanted.find((name) => !offered.includes(name))
  if (unknown !== undefined) misused(`--only: unknown benchmark "${unknown}"; expected one of ${offered.join(", ")}`)
  const benches = wanted.flatMap((name) => all.filter(({ bench }) => bench.name === name))
  const onBackends = benches.flatMap(({ bench, file }) => backends.map((backend) => ({ bench, file, backend })))
  const nameWidth = Math.max(0, ...onBackends.map(({ bench, backend }) => nameOn(bench, backend).length))
  if (options.list) {
    for (const {
      bench: { name, unit, about },
    } of benches)
      console.log(`${name.padEnd(nameWidth)}  ${about} (${unit})`)
    return
  }

  const print = options.json ? console.error : console.log
  const limit = await limitOf(256, pin)
  const wider = await limitOf(512, pin)
  const widerText = wider === undefined ? "" : ` with vectors of 256 bits, ${shown(wider)} with 512`
  const limitText = limit === undefined ? "" : `, a core does ${shown(limit)} GFLOP/s${widerText}`
  print(
    `Node ${process.versions.node}, ${cpus()[0]?.model ?? process.arch}, ${availableParallelism()} cores${limitText}\n`,
  )
  const unitWidth = Math.max(...benches.map(({ bench }) => bench.unit.length))
  const results: Array<Result> = []
  for (const { bench, file, backend } of onBackends) {
    const place = {
      ...(revisions.own === undefined ? {} : { root: revisions.own }),
      variables: { ...onBackend(backend), ...(options.kernels && { [kernelsVariable]: "1" }) },
      pin,
    }
    const shownName = nameOn(bench, backend)
    const own = async (): Promise<Measurement> => withShare(await measure(bench.name, file, place), limit)
    const add = async (measuring: Promise<Figures & Measurement>): Promise<void> => {
      try {
        const { details, ...figures } = await measuring
        const [value, unit, more] = row(bench, { ...figures, ...(details && { details }) })
        print(`${shownName.padEnd(nameWidth)}  ${value.padStart(11)} ${unit.padEnd(unitWidth)}  ${more}`.trimEnd())
        results.push({ name: shownName, unit, ...figures })
      } catch (error) {
        const reason = error instanceof Error ? error.message : error
        print(`${shownName.padEnd(nameWidth)}  ${"failed".padStart(11)} ${reason}`)
        process.exitCode = 1
      }
    }
    const rivals = rivalsOf(bench, file, revisions, backend)
    if (!isComparison) await add(own())
    for (const rival of rivals) await add(measureAgainst(bench, own, rival))
  }
  if (options.json) console.log(JSON.stringify({ results }))
}

/** Runs the benchmarks, with the revisions of `--compare` in folders of their own. */
const start = async (): Promise<void> => {
  const [own] = positionals
  const { compare: other } = options
  if (other === undefined) return main({})
  await withRevision(other, (otherFolder) =>
    own === undefined
      ? main({ other: otherFolder })
      : withRevision(own, (folder) => main({ own: folder, other: otherFolder })),
  )
}

if (options.help) console.log(help)
else await start().catch((error: unknown) => misused(error instanceof Error ? error.message : String(error)))
