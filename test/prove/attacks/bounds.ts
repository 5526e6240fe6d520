/** Numbers of configs and flags that would become memory, processes or threads, in hundreds of thousands of draws. */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { bounds, realBounds } from "../../../src/base/config/bounds.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"
import { configNumbers } from "../../house/configNumbers.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const table = { ...bounds, ...realBounds }
const isRow = (name: string | undefined): name is keyof typeof table => name !== undefined && name in table
const limited: ReadonlySet<string> = new Set(["memory", "processes", "threads", "connections", "timers"])
const special = [-1e308, -(2 ** 53), -1, 0, 0.5, 1, 1e3, 1e9, 2 ** 31, 2 ** 53, 1e308, NaN, Infinity, -Infinity]

const drawn: Attack = {
  door: "configs",
  name: "numbers of all configs, drawn at random",
  attempt: async () => {
    const random = Rng.stream(1, "attacks", "bounds")
    const numbers = configNumbers()
    let accepted = 0
    let tried = 0
    for (const { path, ast, bound } of numbers) {
      const accepts = Schema.is(Schema.make<Schema.Codec<number, number>>(ast))
      const values = Array.from({ length: 200 }, () => (random.uniform() - 0.5) * 10 ** (random.uniform() * 308))
      for (const value of [...special, ...values, ...values.map(Math.round)]) {
        tried++
        if (!accepts(value)) continue
        accepted++
        if (!isRow(bound) || !limited.has(table[bound].takes)) continue
        must(value >= table[bound].least && value <= table[bound].most, `${path.join(".")} accepts ${value}`)
      }
    }
    return `${tried} values of ${numbers.length} numbers: ${accepted} accepted, all of them within bounds`
  },
}

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Flags and settings that once started processes, or ended with a stack trace. */
const commands: ReadonlyArray<ReadonlyArray<string>> = [
  ["run", "many.yaml", "--set", "trainer.ranks=100000"],
  ["run", "many.yaml", "--ranks", "100000"],
  ["run", "many.yaml", "--set", "trainer.rows=100000000"],
  ["run", "cart.yaml", "--set", "num_envs=1e9"],
  ["run", "cart.yaml", "--set", "algorithm.nsteps=1e9"],
  ["run", "cart.yaml", "--set", "algorithm.hidden=[1_000_000]"],
  ["run", "cart.yaml", "--set", "workers=1000000"],
  ["run", "cart.yaml", "--threads", "1000000"],
  ["run", "cart.yaml", "--seeds", "1..1000000000"],
  ["run", "cart.yaml", "--seeds", "1..2", "--jobs", "1000000"],
  ["serve", "model", "--slots", "1000000000"],
  ["serve", "model", "--page-size", "1000000000"],
  ["serve", "model", "--max-lora-rank", "1000000000"],
  ["serve", "model", "--max-adapters", "1000000000"],
  ["serve", "model", "--max-model-len", "1000000000"],
]

const typed: Attack = {
  door: "configs",
  name: "huge numbers on the command line and in files",
  attempt: async (folder) => {
    const model = "{ type: scratch, hidden_size: 8, layers: 1, heads: 2, max_positions: 64 }"
    const runs = "{ a: { train_dataset: { type: reverse_text, num_tasks: 4 }, max_steps: 1 } }"
    writeFileSync(join(folder, "many.yaml"), `kind: multirun\nmodel: ${model}\ntrainer: { width: 64 }\nruns: ${runs}\n`)
    writeFileSync(join(folder, "cart.yaml"), "env: CartPole-v1\ntotal_steps: 64\nalgorithm: { name: ppo }\n")
    const launcher = join(root, "bin/effect.js")
    for (const words of commands) {
      const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, ...words], {
        cwd: folder,
        encoding: "utf8",
      })
      const name = words.join(" ")
      must(status === 2, `${name}: exit code ${status}: ${stdout}${stderr}`)
      must(stderr.trim().split("\n").length === 1, `${name}: more than a line: ${stderr}`)
      must(!/starts as process/.test(stdout + stderr), `${name}: a process was started`)
    }
    return `${commands.length} commands refused in one line, nothing started`
  },
}

export const boundsAttacks: ReadonlyArray<Attack> = [drawn, typed]
