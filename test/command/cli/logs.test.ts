import { assert, describe, it } from "vitest"
import { effect, withFolder, write } from "./effect.ts"

/** Every answer is cut off, and the program logs on its own behind the run. */
const program = `
import { HistoryAgent, Question, Runtime, Scoring, Scripted, TaskSet } from "effect-rl"
import { Effect } from "effect"

const task = Question.make({
  id: "q", type: "q", metadata: {}, observation: "What?", key: { targets: ["1"] }, score: Scoring.exact,
})
export default Runtime.run({
  agent: HistoryAgent.make({ model: "scripted:cut" }),
  train: TaskSet.of("questions", [task]),
  runtime: { maxStepsPerEpisode: 1 },
}).pipe(
  Effect.tap(() => Effect.logWarning("after the run")),
  Effect.provide(Scripted.layer(() => ({ content: "1", finishReason: "length" }))),
)
`

describe("effect run --json", () => {
  it("prints the result alone on standard output: what is logged is in run.log and on standard error", () =>
    withFolder(async (folder) => {
      const { code, stdout, stderr } = await effect(["run", write(folder, "cut.ts", program), "--json"], folder)
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(JSON.parse(stdout).episodes, 1)
      assert.match(stderr, /^warning: scripted:cut: an answer was cut off at its length/m)
      assert.match(stderr, /after the run/)
    }))
})
