/**
 * `npm run scores`: trains what the table of docs/scores.md lacks, row by row, and writes the table. Interrupted, it goes on
 * where it was when it is started again: a training resumes from its checkpoint, with the same bits.
 */
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { peersFolder } from "../../bench/peers/peers.ts"
import { bounds } from "../../src/base/config/bounds.ts"
import { highest } from "../../src/base/statistics/extremes.ts"
import { docsFolder, filesIn, writePage, writePictures } from "./files.ts"
import { chosenRows, nameOf, type Row, rows } from "./rows.ts"
import { resultFile } from "./ScoreResult.ts"
import { collect, isStopped, stopBySignals, train, trainPeer, type TrainingOptions } from "./training.ts"

const help = `Trains what the table of docs/scores.md lacks, and writes it.

  npm run scores                             all rows, in their order
  npm run scores -- --only NAME[,NAME …]     some: ppo, HalfCheetah-v5, or ppo/HalfCheetah-v5
  npm run scores -- --list                   the rows, with the number of trainings that are done
  npm run scores -- --page                   writes the page from the results, without training
                   [--hours N]               starts no training later than this many hours from now
                   [--jobs N]                trainings at a time; when left out 1, or all seeds of a row on a cluster
                   [--cluster postgres://…]  trains all seeds of a row on the workers of a cluster (docs/cluster.md)
                   [--python FILE]           a Python that has stable-baselines3; $EFFECT_RL_PEERS/venv/bin/python or python3
                                             when left out
                   [--no-peers]              without Stable-Baselines3
                   [--work FOLDER]           the folder of the runs; results/scores when left out
                   [--docs FOLDER]           the folder of the page and of its results; docs when left out`

/** Prints a problem with the command line in one line, and ends the process. */
const misused = (message: string): never => {
  console.error(`scores: ${message} (see --help)`)
  process.exit(2)
}

const parsed = (() => {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        list: { type: "boolean", default: false },
        page: { type: "boolean", default: false },
        hours: { type: "string" },
        jobs: { type: "string" },
        cluster: { type: "string" },
        python: { type: "string" },
        "no-peers": { type: "boolean", default: false },
        work: { type: "string", default: "results/scores" },
        docs: { type: "string", default: docsFolder },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values
  } catch (error) {
    return misused(error instanceof Error ? error.message : String(error))
  }
})()

/** The names that `--only` gives. */
const names = parsed.only.flatMap((some) => some.split(",")).filter((name) => name !== "")
const unknown = names.find((name) => chosenRows([name]).length === 0)
if (unknown !== undefined) misused(`--only ${unknown}: expected an algorithm, an env or ALGORITHM/ENV of a row`)
const chosen = chosenRows(names)

const mostJobs = bounds.runs.most
/** The number of trainings at a time. */
const jobs = Number(parsed.jobs ?? (parsed.cluster === undefined ? 1 : highest(rows.map(({ seeds }) => seeds))))
if (!Number.isInteger(jobs) || jobs < 1 || jobs > mostJobs)
  misused(`--jobs ${parsed.jobs}: expected a whole number from 1 to ${mostJobs}`)
const hours = parsed.hours === undefined ? Infinity : Number(parsed.hours)
if (!(hours > 0)) misused(`--hours ${parsed.hours}: expected a positive number`)
const deadline = performance.now() + hours * 3_600_000

const docs = resolve(parsed.docs)
const resultsFolder = filesIn(docs).results
const peersPython = join(peersFolder(), "venv/bin/python")
const options: TrainingOptions = {
  results: resultsFolder,
  work: resolve(parsed.work),
  jobs,
  cluster: parsed.cluster,
  python: parsed.python ?? (existsSync(peersPython) ? peersPython : "python3"),
}

const seedsOf = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

const missingSeeds = (row: Row, trainer: "effect-rl" | "stable-baselines3"): ReadonlyArray<number> =>
  seedsOf(trainer === "effect-rl" ? row.seeds : row.peerSeeds).filter(
    (seed) => !existsSync(resultFile(resultsFolder, trainer, row, seed)),
  )

const mayStart = (): boolean => !isStopped() && performance.now() < deadline

/** Trains the missing seeds of a row, some at a time, and writes the page after each time. */
const trainRow = async (row: Row): Promise<void> => {
  // A process that was killed may have left finished runs without results.
  collect(row, resultsFolder, options.work, missingSeeds(row, "effect-rl"))
  for (let seeds = missingSeeds(row, "effect-rl"); seeds.length > 0 && mayStart();) {
    const some = seeds.slice(0, jobs)
    console.log(`${nameOf(row)}: seeds ${some.join(", ")}`)
    await train(row, some, options)
    seeds = missingSeeds(row, "effect-rl")
    writePage(docs)
  }
  if (parsed["no-peers"]) return
  for (const seed of missingSeeds(row, "stable-baselines3")) {
    if (!mayStart()) return
    console.log(`${nameOf(row)}: Stable-Baselines3, seed ${seed}`)
    await trainPeer(row, seed, options)
    writePage(docs)
  }
}

/** Trains the rows, one after the other; a row that fails doesn't stop the others. Returns the number of failures. */
const trainRows = async (): Promise<number> => {
  let failures = 0
  for (const row of chosen) {
    if (!mayStart()) break
    try {
      await trainRow(row)
      // An interrupted row has its pictures drawn at the end of the row, or by --page.
      if (!isStopped()) writePictures(docs)
    } catch (error) {
      failures++
      console.error(`scores: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return failures
}

const list = (): void => {
  for (const row of chosen) {
    const done = row.seeds - missingSeeds(row, "effect-rl").length
    const peers = row.peerSeeds - missingSeeds(row, "stable-baselines3").length
    const beside = row.peerSeeds === 0 ? "" : `, Stable-Baselines3 ${peers} of ${row.peerSeeds}`
    console.log(`${nameOf(row)}: ${row.steps.toLocaleString("en")} steps, ${done} of ${row.seeds} seeds${beside}`)
  }
}

if (parsed.help) console.log(help)
else if (parsed.list) list()
else if (parsed.page) {
  writePage(docs)
  writePictures(docs)
} else {
  stopBySignals()
  const failures = await trainRows()
  if (isStopped()) console.error("scores: interrupted; start it again to go on")
  const ended = failures === 0 ? 0 : 1
  process.exitCode = isStopped() ? 130 : ended
}
