import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { runsIn } from "../../command/cli/crash.ts"
import { program, resultOf, start, withFolder, write } from "../../command/cli/effect.ts"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"
import { contentOf, interrupted, killAll, startWorker, watched } from "./workers.ts"

if (!hasPostgres) console.warn("trainings.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

/** An agent that is made in code: it writes down what it was told, and its env is a closure. */
const agent = (answer: string) => `
import { Effect } from "effect"
import { HistoryAgent, Runtime, Scripted, TaskSet, TextEnv } from "effect-rl"

const ask = (number: number) =>
  TextEnv.make({
    id: \`ask-\${number}\`,
    type: "ask",
    begin: () => ({ state: 0, observation: \`What is [\${number % 5}] called?\` }),
    step: (_, action) => ({
      state: 1,
      observation: null,
      feedback: { score: action.includes("${answer}") ? 1 : 0, target: "${answer}", message: 'The target is "${answer}".' },
      terminated: true,
    }),
  })
const tasks = (count: number) => TaskSet.of("asking", Array.from({ length: count }, (_, at) => ask(at)))
export default Runtime.run({
  agent: HistoryAgent.make({ model: "scripted:reader" }),
  train: tasks(6),
  validation: tasks(70),
  runtime: { validationFreq: 2, runValidationAtStart: true },
  output: { saveRollouts: true },
}).pipe(Effect.provide(Scripted.layer(Scripted.named["reader"])))
`

const guesses = `
kind: agents
agent: { type: memoryless_agent, lm_config: { model: "builtin:choice:A,B,C", temperature: 1 } }
train_dataset: { type: codebook, num_tasks: 100 }
validation_dataset: { type: codebook, num_tasks: 70, seed: 2 }
runtime: { validation_freq: 50 }
output: { save_rollouts: true }
`

describe.skipIf(!hasPostgres)("the trainings of a cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterEach(killAll)
  afterAll(() => postgres.remove())

  /** Trains on this machine and on a cluster, on which `disturb` does what it likes, and compares results and files. */
  const same = async (folder: string, file: string, disturb: () => Promise<void>): Promise<void> => {
    const results = mkdtempSync(join(folder, "results-"))
    const words = (place: string) => ["run", file, "--results-dir", join(results, place), "--json", "--quiet"]
    const alone = await start(words("alone"), folder).ended
    assert.strictEqual(alone.code, 0, alone.stderr)
    const client = watched(start([...words("spread"), "--cluster", postgres.url], folder))
    await disturb()
    const spread = await client.ended
    assert.strictEqual(spread.code, 0, spread.stderr)
    assert.strictEqual(resultOf(spread).digest, resultOf(alone).digest)
    const [[here], [there]] = ["alone", "spread"].map((place) => runsIn(join(results, place)))
    assert.deepStrictEqual(contentOf(there), contentOf(here))
  }

  it("have the files of one machine, although a worker is killed: agents and a policy, of configs and of programs", () =>
    withFolder(async (folder) => {
      const [doomed, other] = [0, 1].map(() => startWorker(postgres.url, folder, ["--slots", "2"]))
      await Promise.all([doomed, other].map((worker) => worker.says(/joined/)))
      await same(folder, write(folder, "guesses.yaml", guesses), async () => {
        await doomed.says(/did agent-rollouts .* episodes/)
        await doomed.says(/did agent-validation .* after 0 episodes|did agent-validation .* after 50 episodes/)
        doomed.child.kill("SIGKILL")
      })
      const training = write(folder, "train.ts", program("validation: { everySteps: 1024, episodes: 5 }"))
      await same(folder, training, () => other.says(/did validation .* step \d+ policy \w+ batch 1 episodes 5-5 /))
      await same(folder, write(folder, "agent.ts", agent("Ann")), () => other.says(/did agent-validation .* after 2 /))
      // The worker loads the changed program, although it has loaded an earlier one of this name.
      await same(folder, write(folder, "agent.ts", agent("Bob")), () => other.says(/after 4 /))
      await interrupted(other)
    }))
})
