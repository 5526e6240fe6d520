/** Starts a small trainer by the real command, for tests that look at what it starts, or kill it. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { stringify } from "yaml"
import { assert } from "vitest"
import { type Outcome, resultOf, root, start, type Started, until } from "../command/cli/effect.ts"
import { configOf, runConfig, validated } from "./smallTraining.ts"

const runs = {
  a: runConfig(1, { ...validated, max_steps: 4, checkpoint: { every: 1 } }),
  b: runConfig(2, { max_steps: 10, batch: { size: 16, group_size: 4 }, checkpoint: { every: 2 } }),
}

/** A folder with the config of a trainer; all that was started in it is killed after the test. */
export const withTrainer = async (body: (trainer: ReturnType<typeof trainerIn>) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "command-"))
  const trainer = trainerIn(folder)
  try {
    await body(trainer)
  } finally {
    await trainer.killed()
    rmSync(folder, { recursive: true, force: true })
  }
}

const trainerIn = (folder: string) => {
  const config = join(folder, "train.yaml")
  writeFileSync(config, stringify(configOf(runs)))
  const results = join(folder, "results")
  const all: Array<Started> = []
  const run = (args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}): Started => {
    const words = ["run", config, "--results-dir", results, "--backend", "wasm", "--json", "--quiet", ...args]
    const started = start(words, root, { env: { ...process.env, ...env } })
    all.push(started)
    return started
  }
  /** The folder of the only run, `TIME/COMMIT_NAME…/RUNS/0001`; the folder `results` until it is there. */
  const runDir = (): string => {
    let directory = results
    for (let depth = 0; depth < 4 && existsSync(directory); depth++)
      directory = join(directory, readdirSync(directory).at(0) ?? "")
    return directory
  }
  const log = (): string => readFileSync(join(runDir(), "run.log"), "utf8")
  return {
    folder,
    run,
    runDir,
    log,
    /** Waits until a file of the run is there. */
    has: (file: string) => until(() => existsSync(join(runDir(), file))),
    /** The processes of the ranks that were started, in their order. */
    ranks: (): ReadonlyArray<number> => [...log().matchAll(/rank \d+ starts as process (\d+)/g)].map(([, pid]) => +pid),
    killed: async () => {
      for (const { child } of all) child.kill("SIGKILL")
      await Promise.all(all.map(({ ended }) => ended))
    },
  }
}

export const digestOf = (outcome: Outcome): string => {
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return resultOf(outcome).digest
}

const simplest = ["--set", "trainer.ranks=1", "--set", "inference.own_thread=false"]

let alone: Promise<string> | undefined
/** The digest of the trainer in one process and one thread that nothing interrupts. */
export const digestAlone = (): Promise<string> =>
  (alone ??= new Promise<string>((resolve, reject) => {
    withTrainer(async ({ run }) => resolve(digestOf(await run(simplest).ended))).catch(reject)
  }))
