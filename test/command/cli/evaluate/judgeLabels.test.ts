import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { stringify } from "yaml"
import { evaluationReport } from "../../../../src/command/ui/evaluationReport.ts"
import { cells, told } from "../capitals.ts"
import { effect, resultOf, withFolder, write } from "../effect.ts"

/** Answers that people have labelled, and a judge that says of each whether it is polite. */
const evaluation = (labels: ReadonlyArray<unknown>, scorer: object = {}, more: object = {}): string =>
  stringify({
    name: "polite",
    seed: 5,
    dataset: {
      items: labels.map((human, at) => ({ id: `answer-${at}`, question: "Well?", answer: "Yes", human })),
      id_field: "id",
      meta_fields: ["human"],
    },
    agents: { mine: { type: "memoryless_agent", lm_config: { model: "builtin:choice:Yes" } } },
    scorers: [
      {
        type: "judge",
        rubric: "Is it polite?",
        label: "human",
        lm_config: { model: "builtin:choice:SCORE=0.9,SCORE=0.2", temperature: 1 },
        ...scorer,
      },
    ],
    ...more,
  })

const labels = [1, 0, true, false, "1", "0.2", 1, 0, 1, 1, "", null]

const agreementIn = (report: unknown) =>
  evaluationReport({ report, confidence: 0.95 })?.agents[0].agreement[0] ?? assert.fail("no agreement")

describe("a judge with a label", () => {
  it(
    "is reported with its agreement and kappa, in the terminal, in metrics.json and for the page",
    { tags: "slow" },
    () =>
      withFolder(async (folder) => {
        write(folder, "tasks.yaml", evaluation(labels, {}, { repeats: 3 }))
        const played = told(await effect(["eval", "tasks.yaml"], folder))
        const runDir = played.stdout.trim().split("\n").at(-1) ?? ""
        const metrics = JSON.parse(readFileSync(join(folder, runDir, "metrics.json"), "utf8"))
        const agreement = agreementIn(metrics.report)
        assert.deepInclude(agreement, { scorer: "judge", label: "human", items: 10, pairs: 30 })
        // Count again from the rows.
        const rows = readFileSync(join(folder, runDir, "episodes.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line)) // prettier-ignore
        const pairs = rows
          .filter(({ metadata }) => metadata.human !== "" && metadata.human !== null)
          .map(({ scores, metadata }) => [scores.judge >= 0.5, [1, true, "1"].includes(metadata.human)])
        assert.strictEqual(agreement.agreement, pairs.filter(([judge, human]) => judge === human).length / 30)
        const [line] = cells(played.stdout).filter((text) => text.startsWith("judge | human | mine"))
        assert.match(line, /^judge \| human \| mine \| 0\.\d+ \| -?0\.\d+ \| -?\d\.\d+ to -?\d\.\d+ \| 30 \| 10$/)
        assert.include(cells(played.stdout), "judge | label | agent | agreement | kappa | 95 % | answers | tasks")
        await effect(["eval", runDir, "--summary", "summary.md"], folder)
        assert.include(readFileSync(join(folder, "summary.md"), "utf8"), "| judge | human | mine |")

        // The seed of the run decides the interval.
        const again = resultOf(told(await effect(["eval", "tasks.yaml", "--json", "--quiet"], folder)))
        assert.deepEqual(agreementIn(again["report"]), agreement)
      }),
  )

  it("counts passes by its own threshold and by that of the labels", () =>
    withFolder(async (folder) => {
      write(folder, "tasks.yaml", evaluation([5, 4, 2, 1], { label_threshold: 4, judge_threshold: 0.1 }))
      const { report } = resultOf(told(await effect(["eval", "tasks.yaml", "--json", "--quiet"], folder)))
      // All judgements are passes, so half of them agree: as many as by chance.
      assert.deepInclude(agreementIn(report), { agreement: 0.5, kappa: 0, low: 0, high: 0 })
    }))

  it("needs labels that are scores, and is refused with what to do before anything is played", () =>
    withFolder(async (folder) => {
      const table: ReadonlyArray<readonly [string, string]> = [
        [
          evaluation([1, "great"]),
          'expected labels that are numbers, true or false, found "great" for task "answer-1"',
        ],
        [evaluation([1, 2], { label: "humen" }), 'no task has the key "humen" in its metadata; did you mean "human"?'],
        [
          evaluation([1], { label: undefined, label_threshold: 3 }),
          "scorers.0.label_threshold: expected label as well",
        ],
        [evaluation([1], { label_threshold: "high" }), "scorers.0.label_threshold: expected"],
      ]
      for (const [text, message] of table) {
        write(folder, "tasks.yaml", text)
        const outcome = await effect(["eval", "tasks.yaml"], folder)
        assert.strictEqual(outcome.code, 2, outcome.stderr)
        assert.include(outcome.stderr, message)
      }
    }))
})
