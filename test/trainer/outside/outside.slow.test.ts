import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import * as Layout from "../../../src/trainer/Layout.ts"
import { runsIn } from "../../command/cli/crash.ts"
import {
  effect,
  type Outcome,
  resultOf,
  start,
  type Started,
  until,
  withFolder,
  write,
} from "../../command/cli/effect.ts"

const template =
  "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"

const run = (seed: number): string => `
    seed: ${seed}
    train_dataset: { type: reverse_text, num_tasks: 40, seed: ${seed}, max_letters: 3, scoring: similarity }
    validation_dataset: { type: reverse_text, num_tasks: 4, seed: 99, max_letters: 3, scoring: similarity }
    validation: { every: 2 }
    max_steps: 6
    supervised: { steps: 1, lr: 0.02 }
    optimiser: { type: adamw, lr: 0.01 }
    batch: { size: 8, group_size: 4 }
    sampling: { max_tokens: 3 }
    checkpoint: { every: 1, keep: 2 }
    max_async_level: 0`

/** The config of a trainer: of the whole model by one run, or of adapters by three runs, of which one has to wait. */
const config = (kind: "full" | "adapters", orchestrators: "inside" | "outside"): string => `
kind: multirun
name: small
seed: 1
model:
  type: scratch
  hidden_size: 16
  layers: 1
  heads: 2
  max_positions: 24
  tokenizer: { alphabet: "abcdefghijklmnopqrstuvwxyz: ", template: "${template}" }
trainer: { rows: 4, width: 24, block: 8${kind === "full" ? "" : ", max_runs: 2, lora: { rank: 2, alpha: 4, targets: [q_proj, v_proj] }"} }
inference: { generating: [1, 8], reading: [8], page_size: 8 }
orchestrators: ${orchestrators}
runs:
${(kind === "full" ? ["letters"] : ["a", "b", "c"]).map((name, at) => `  ${name}:${run(at + 1)}\n`).join("")}`

const args = (file: string, results: string): ReadonlyArray<string> =>
  ["run", file, "--results-dir", results, "--backend", "wasm"].concat("--json", "--quiet")

/** Trains with orchestrators in the trainer's process, and returns the digest. */
const digestInside = async (folder: string, kind: "full" | "adapters"): Promise<string> => {
  const file = write(folder, "inside.yaml", config(kind, "inside"))
  const outcome = await effect(args(file, join(folder, "inside")))
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return resultOf(outcome).digest
}

/** The three processes of a training, of which each can be killed and started again. */
const processesOf = async (folder: string, text: string) => {
  const file = write(folder, "outside.yaml", text)
  const results = join(folder, "outside")
  const all = new Set<Started>()
  const begin = (words: ReadonlyArray<string>): Started => {
    const started = start(words)
    all.add(started)
    return started
  }
  const train = (): Started => {
    const [directory] = runsIn(results)
    return begin([...args(file, results), ...(directory === undefined ? [] : ["--resume", directory])])
  }
  let trainer = train()
  await until(() => runsIn(results).length > 0)
  const [directory] = runsIn(results)
  let port = "0"
  const serve = async (): Promise<Started> => {
    const started = begin(["serve", directory, "--port", port, "--backend", "wasm", "--json"])
    const line = await new Promise<string>((resolve) => {
      started.child.stdout?.once("data", (data) => resolve(String(data)))
      void started.ended.then(({ stderr }) => resolve(stderr))
    })
    port = /:(\d+)\/v1/.exec(line)?.[1] ?? assert.fail(line)
    return started
  }
  let server = await serve()
  const play = (): Started =>
    begin(["orchestrate", directory, "--server", `http://127.0.0.1:${port}`, "--json", "--quiet"])
  let player = play()
  const kill = async ({ child, ended }: Started): Promise<void> => {
    child.kill("SIGKILL")
    await ended
  }
  return {
    directory,
    /** Waits until a run has the samples of a step. */
    played: (name: string, step: number) =>
      until(() => existsSync(join(directory, name, Layout.rolloutsOf(step), Layout.stable))),
    killTrainer: async () => {
      await kill(trainer)
      trainer = train()
    },
    killServer: async () => {
      await kill(server)
      server = await serve()
    },
    killPlayer: async () => {
      await kill(player)
      player = play()
    },
    /** Waits for the trainer and the orchestrators, then ends the server as Ctrl-C does. */
    outcomes: async (): Promise<readonly [trainer: Outcome, player: Outcome, server: Outcome]> => {
      const both = await Promise.all([trainer.ended, player.ended])
      server.child.kill("SIGINT")
      return [...both, await server.ended]
    },
    end: async () => {
      for (const { child } of all) child.kill("SIGKILL")
      await Promise.all([...all].map(({ ended }) => ended))
    },
  }
}

type Processes = Awaited<ReturnType<typeof processesOf>>

/** Trains in three processes while `disturb` works, and compares with a training in one. */
const sameAsInside = (kind: "full" | "adapters", disturb: (processes: Processes) => Promise<void>) =>
  withFolder(async (folder) => {
    const digest = await digestInside(folder, kind)
    const processes = await processesOf(folder, config(kind, "outside"))
    try {
      await disturb(processes)
      const [trainer, player, server] = await processes.outcomes()
      assert.deepStrictEqual([trainer.code, player.code, server.code], [0, 0, 130], trainer.stderr + player.stderr)
      assert.strictEqual(resultOf(trainer).digest, digest)
      const ended: ReadonlyArray<{ readonly ended: string }> = JSON.parse(player.stdout)
      assert.deepStrictEqual(
        ended.map((one) => one.ended),
        kind === "full" ? ["Finished"] : ["Finished", "Finished", "Finished"],
      )
    } finally {
      await processes.end()
    }
  })

describe("a trainer, its server and its orchestrators in processes of their own", () => {
  // The adapters have three runs, one of which waits for another to end.
  it.for(["full", "adapters"] as const)(
    "give the same bits as one process, also if each of them is killed and started again (%s)",
    (kind) =>
      sameAsInside(kind, async ({ played, killPlayer, killServer, killTrainer }) => {
        const name = kind === "full" ? "run_letters" : "run_a"
        await played(name, 1)
        await killPlayer()
        await played(name, 2)
        await killServer()
        await played(name, 3)
        await killTrainer()
        await played(name, 4)
        await Promise.all([killServer(), killPlayer()])
      }),
  )

  it("never use weights that are older than max_async_level, also if the server is killed", () =>
    withFolder(async (folder) => {
      const text = config("adapters", "outside").replaceAll("max_async_level: 0", "max_async_level: 2")
      const processes = await processesOf(folder, text.replaceAll("max_steps: 6", "max_steps: 12"))
      try {
        for (const step of [3, 6]) {
          await processes.played("run_a", step)
          await processes.killServer()
        }
        const [trainer, player] = await processes.outcomes()
        assert.deepStrictEqual([trainer.code, player.code], [0, 0], trainer.stderr + player.stderr)
        const ages = ["run_a", "run_b", "run_c"].flatMap((name) =>
          Array.from({ length: 11 }, (_, at): number => {
            const report = join(processes.directory, name, Layout.rolloutsOf(at + 1), Layout.inRollouts.report)
            return JSON.parse(readFileSync(report, "utf8")).metrics["sampling/staleness"]
          }),
        )
        assert.isAbove(Math.max(...ages), 0)
        assert.isAtMost(Math.max(...ages), 2)
        assert.isAtLeast(Math.min(...ages), 0)
      } finally {
        await processes.end()
      }
    }))
})
