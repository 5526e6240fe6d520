import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { command } from "../../../../src/command/cli/command.ts"
import { Output } from "../../../../src/command/cli/output/output.ts"
import { handlersOfTrainings } from "../../../../src/command/cli/worker/sentTraining.ts"
import type { Handler } from "../../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../../src/spread/cluster/unreliable.ts"
import { platform } from "../../../../src/node.ts"
import { effect, program, resultOf, withFolder, write } from "../effect.ts"

const settings = "validation: { everySteps: 1024, episodes: 5 }, checkpoint: { everySteps: 1024 }"

const trained = async (folder: string, file: string, text: string) => {
  const args = ["run", write(folder, file, text), "--results-dir", join(folder, "results"), "--quiet", "--json"]
  const outcome = await effect(args)
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return resultOf(outcome).runDir
}

const agents = `
kind: agents
agent: { type: history_agent, lm_config: { model: "scripted:reader" } }
train_dataset: { type: codebook, num_tasks: 3 }
validation_dataset: { type: codebook, num_tasks: 20, seed: 9 }
`

type Payload = Readonly<Record<string, unknown>>

/** Evaluates with workers that are lost, late, or do a job twice. Returns what is printed, and the payloads of the jobs. */
const spread = (args: ReadonlyArray<string>, seed: number, changes: Payload = {}) =>
  Effect.gen(function* () {
    let [stdout, stderr] = ["", ""]
    const played: Array<Payload> = []
    const fields = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))
    const handlers = (yield* handlersOfTrainings).map(({ name, perform }): Handler => ({
      name,
      perform: (payload) => Effect.suspend(() => (played.push(fields(payload)), perform({ ...fields(payload), ...changes }))), // prettier-ignore
    }))
    const error = yield* command(args).pipe(
      Effect.provideService(Output, {
        stdout: (text) => Effect.sync(() => void (stdout += text)),
        stderr: (text) => void (stderr += text),
      }),
      Effect.provide(layerUnreliable({ seed, handlers })),
      Effect.match({ onFailure: String, onSuccess: () => undefined }),
    )
    return { stdout, stderr, error, played }
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, platform]), Effect.runPromise)

const withoutTimes = (stdout: string) => {
  const { wallSeconds, stepsPerSecond, ...result } = JSON.parse(stdout)
  assert.isAbove(wallSeconds, 0)
  assert.isAtLeast(stepsPerSecond, 0)
  return result
}

describe("the evaluation of a run on other machines", () => {
  it("gives the episodes that one machine plays, to the bit, however the network behaves", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const policy = await trained(folder, "train.ts", program(settings))
      for (const [at, args] of [
        ["eval", policy, "--episodes", "100"],
        ["eval", policy, "--episodes", "70", "--step", "1024", "--set", "validation.sampled=true"],
        ["eval", policy, "--episodes", "40", "--file", join(folder, "train.ts")],
        ["eval", await trained(folder, "agents.yaml", agents), "--episodes", "15"],
      ].entries()) {
        const alone = await effect([...args, "--json"])
        assert.strictEqual(alone.code, 0, alone.stderr)
        const { stdout, played, error } = await spread([...args, "--json"], 7 + at)
        assert.isUndefined(error)
        assert.deepStrictEqual(withoutTimes(stdout), withoutTimes(alone.stdout))
        // Workers are lost, so some jobs are done more than once.
        const jobs = new Set(played.map(({ batch, from, to }) => `${String(batch)} ${String(from)}-${String(to)}`))
        assert.lengthOf(jobs, [15, 14, 14, 15][at])
      }
    }),
  )

  it("is refused by a worker that has other settings or another program", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const run = await trained(folder, "train.ts", program(settings))
      const args = ["eval", run, "--episodes", "40", "--json"]
      const other = await spread(args, 1, { identity: { seed: 7 } })
      assert.match(other.error ?? "", /on a worker of the cluster: /)
      const files = [{ path: join(folder, "train.ts"), sha256: "1".repeat(64) }]
      const training = { _tag: "Program", backend: "wasm", files, name: "eval", overrides: [] }
      assert.match((await spread(args, 1, { training })).error ?? "", /train\.ts: expected the file/)
    }),
  )

  it("is refused for finished evaluations", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", "dataset: { type: codebook, num_tasks: 1 }\nagents:\n  a: { type: memoryless_agent, lm_config: { model: \"scripted:echo\" } }\n") // prettier-ignore
      const outcome = await effect(["eval", "tasks.yaml", "--quiet", "--json"], folder)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const refused = await effect(
        ["eval", join(folder, resultOf(outcome).runDir), "--cluster", "postgres://db/rl"],
        folder,
      )
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "--cluster only works with the run of a training")
    }))
})
