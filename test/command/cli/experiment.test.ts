import { readlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { resultOf, effect, withFolder, write } from "./effect.ts"
import {
  at,
  comparable,
  experiment,
  filesIn,
  jsonOf,
  linesOf,
  runsBelow,
  someFaults,
  withServer,
} from "./experiment.ts"

const episode = (number: number): string => String(number).padStart(6, "0")

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

/** Every file that the experiment leaves, and no other. */
const tree = (episodes: number, heldOut: number, validations: ReadonlyArray<number>): ReadonlyArray<string> =>
  [
    "config.json",
    "config.yaml",
    "description.txt",
    "logs.tfevents",
    "metrics.json",
    "return.json",
    "run.lease",
    "run.log",
    "system.jsonl",
    "checkpoints/latest",
    "checkpoints/latest.json",
    ...numbers(5).flatMap((back) => {
      const at = episodes - 5 * (5 - back)
      return ["agent.json", "manifest.json", `memory_${at}.jsonl`, "runtime.json"].map(
        (file) => `checkpoints/ep_${episode(at)}/${file}`,
      )
    }),
    `memories/memory_${episodes}.jsonl`,
    "scores/train/scores.jsonl",
    ...validations.map((seen) => `scores/val/${seen}_seen_episodes_scores.jsonl`),
    ...numbers(episodes).flatMap((number) =>
      ["action", "reflection"].map(
        (kind) => `llm_calls/train/${kind}s/${kind}_episode_${episode(number)}_step_0001_call_00.json`,
      ),
    ),
    ...validations.flatMap((seen) =>
      numbers(heldOut).map(
        (number) => `llm_calls/validation/val_${seen}/actions/action_episode_${episode(number)}_step_0001_call_00.json`,
      ),
    ),
  ].sort()

describe("an experiment's file", () => {
  it(
    "runs over a server that fails one time in five: nothing is lost, nothing doubled, all retries counted",
    { tags: "slow" },
    () =>
      withFolder((folder) =>
        withServer({ fault: someFaults(3, 0.2) }, async (server) => {
          write(folder, "experiment.yaml", experiment({ lm: at(server) }))
          const outcome = await effect(["run", "experiment.yaml", "--json"], folder)
          assert.strictEqual(outcome.code, 0, outcome.stderr)
          const [run, ...others] = runsBelow(join(folder, "outputs/my_experiment"))
          assert.deepStrictEqual(others, [])
          assert.match(run, /\/\d{8}_\d{6}$/)
          assert.deepStrictEqual(
            filesIn(run).filter((file) => !/^git\.(json|diff)$/.test(file)),
            tree(40, 8, [0, 20, 40]),
          )
          assert.strictEqual(readlinkSync(join(run, "checkpoints/latest")), "ep_000040")
          assert.deepStrictEqual(jsonOf(join(run, "checkpoints/latest.json")), { path: "ep_000040" })

          const train = linesOf(join(run, "scores/train/scores.jsonl"))
          assert.deepStrictEqual(
            train.map(({ mode, episode_index, step_index }) => [mode, episode_index, step_index]),
            numbers(40).map((number) => ["train", number, 1]),
          )
          for (const seen of [0, 20, 40]) {
            const lines = linesOf(join(run, `scores/val/${seen}_seen_episodes_scores.jsonl`))
            assert.deepStrictEqual(
              lines.map(({ mode, episode_index, step_index }) => [mode, episode_index, step_index]),
              numbers(8).map((number) => ["val", number, 1]),
            )
          }
          // A request with a whole answer was sent once; the others were sent again.
          const wrong = server.asked.filter(({ fault }) => fault.kind !== "none").length
          assert.isAbove(wrong, 5)
          const calls = filesIn(run)
            .filter((path) => path.startsWith("llm_calls/"))
            .map((path) => jsonOf(join(run, path)))
          assert.strictEqual(server.asked.length - wrong, calls.length)
          assert.strictEqual(
            calls.reduce((sum, { retries }) => sum + retries, 0),
            wrong,
          )
          const { usage, train_episodes, train_steps, failed_validation_episodes } = jsonOf(join(run, "metrics.json"))
          assert.deepInclude(usage, { calls: calls.length, retries: wrong })
          assert.deepStrictEqual([train_episodes, train_steps, failed_validation_episodes], [40, 40, 0])
          assert.strictEqual(resultOf(outcome).steps, 40)
        }),
      ),
  )

  it("comes to the same by a server as by the function that the server asks", { tags: "slow" }, () =>
    withFolder((folder) =>
      withServer({}, async (server) => {
        const digests = []
        const scores = []
        for (const lm of [at(server), {}]) {
          write(folder, "experiment.yaml", experiment({ lm }))
          const outcome = await effect(["run", "experiment.yaml", "--json", "--quiet"], folder)
          assert.strictEqual(outcome.code, 0, outcome.stderr)
          const { digest, runDir } = resultOf(outcome)
          digests.push(digest)
          const all = comparable(join(folder, runDir))
          scores.push(
            Object.entries(all)
              .filter(([path]) => path.startsWith("scores/") || path.startsWith("memories/"))
              .map(([path, lines]) => [path, JSON.stringify(lines).replaceAll(/"lm_model":"[^"]+"/g, "")]),
          )
        }
        assert.strictEqual(digests[0], digests[1])
        assert.deepStrictEqual(scores[0], scores[1])
      }),
    ),
  )
})
