import { Effect, Layer } from "effect"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import * as Evaluate from "../../../src/agents/evaluate/Evaluate.ts"
import type { EvaluationSettings } from "../../../src/agents/evaluate/EvaluationConfig.ts"
import { execute } from "../../../src/agents/evaluate/execute.ts"
import type { Contestant, PreparedEvaluation } from "../../../src/agents/evaluate/PreparedEvaluation.ts"
import type { EpisodeToScore } from "../../../src/agents/evaluate/PlayedEpisode.ts"
import * as Scorer from "../../../src/agents/evaluate/Scorer.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { SpendingCounter } from "../../../src/agents/lm/middleware/budgeted.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { scores } from "../../../src/run/record/scores.ts"

/** Guess a word in two tries. */
export const guess = (id: string, target: string, topic = "all"): TextEnv.TextEnv =>
  TextEnv.make<number>({
    id,
    type: "guess",
    metadata: { topic },
    begin: () => ({ state: 0, observation: `${id}: say ${target}` }),
    step: (tries, action) => {
      const right = action.trim() === target
      return {
        state: tries + 1,
        observation: right ? null : `${id}: again, say ${target}`,
        feedback: { score: right ? 1 : 0, target, message: right ? "Correct." : "No." },
        terminated: right || tries === 1,
      }
    },
  })

export const words = ["one", "two", "three", "four", "five", "six"]

export const tasks: TaskSet.TaskSet = TaskSet.of(
  "words",
  words.map((word, at) => guess(`word-${at}`, word, at % 2 === 0 ? "even" : "odd")),
)

/** Repeats the text of a request, except unknown words, and fails at words that break it. */
export const model = (options: { knows?: ReadonlyArray<string>; breaks?: ReadonlyArray<string> } = {}) => {
  const { knows = words, breaks = [] } = options
  const asked: Array<string> = []
  const lm = Scripted.make((request) => {
    const last = request.messages.at(-1)?.content ?? ""
    const word = last.split(" ").at(-1) ?? ""
    asked.push(last)
    if (breaks.includes(word)) {
      const message = `${word} breaks it`
      return Effect.fail(new LmError({ model: request.model, reason: "rejected", attempts: 1, message }))
    }
    // Later words are answered sooner, which must not change the order of the results.
    return Effect.as(Effect.sleep(`${10 - words.indexOf(word)} millis`), knows.includes(word) ? word : "dunno")
  })
  return { lm, asked }
}

export const contestant = (name: string, { lm }: { readonly lm: Lm["Service"] }): Effect.Effect<Contestant> =>
  MemorylessAgent.make({ model: "scripted:test" }).pipe(
    Effect.provideService(Lm, lm),
    Effect.orDie,
    Effect.map((agent) => ({
      name,
      isNamed: true,
      type: agent.type,
      model: agent.model,
      protocol: Evaluate.frozen(agent),
      price: { model: "scripted", input: 1, output: 10 },
    })),
  )

export const settings: EvaluationSettings = {
  kind: "evaluation",
  name: "test",
  description: null,
  seed: 3,
  repeats: 1,
  workers: 4,
  maxStepsPerEpisode: null,
  scorers: ["exact"],
  passAt: null,
  passThreshold: 1,
  by: [],
  confidence: 0.95,
  compareTo: null,
  verbose: true,
  output: { resultsDir: null, logLevel: "INFO" },
}

export const prepared = (
  contestants: ReadonlyArray<Contestant>,
  more: Partial<PreparedEvaluation> = {},
): PreparedEvaluation => ({
  settings,
  tasks,
  contestants,
  scorers: [Scorer.exact(), Scorer.steps()],
  effective: { ...settings },
  identity: { seed: settings.seed },
  other: null,
  logCalls: false,
  spent: new SpendingCounter(),
  source: "test.yaml",
  place: undefined,
  ...more,
})

export interface Place {
  readonly files?: Map<string, Uint8Array>
  readonly resume?: string
}

/** An evaluation in memory, and every file by its path in the run's folder. */
export const evaluated = (what: PreparedEvaluation, { files = new Map(), resume }: Place = {}) =>
  Effect.map(
    Effect.scoped(execute(what)).pipe(
      Effect.provide(
        Layer.merge(
          RunStore.memory({ files, ...(resume === undefined ? {} : { resume }) }).layer,
          Recorder.layer(scores),
        ),
      ),
    ),
    (result) => ({ result, files: below(files, result.runDir) }),
  )

export const below = (files: ReadonlyMap<string, Uint8Array>, folder: string): ReadonlyMap<string, string> =>
  new Map(
    [...files].flatMap(([path, bytes]) =>
      path.startsWith(`${folder}/`) ? [[path.slice(folder.length + 1), new TextDecoder().decode(bytes)] as const] : [],
    ),
  )

export const linesOf = (text: string | undefined): ReadonlyArray<Record<string, unknown>> =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

/** An episode of one step. */
export const answered = (
  action: string | null,
  target: string | null,
  more: Partial<EpisodeToScore> = {},
): EpisodeToScore => {
  const score = action === target ? 1 : 0
  return {
    index: 0,
    task: 0,
    repeat: 0,
    env: { id: "task", type: "test", metadata: {} },
    steps: [
      {
        observation: "What?",
        action,
        feedback: { score, target, message: "" },
        score,
        nextObservation: null,
        info: {},
        terminated: true,
        truncated: false,
        truncationReason: null,
        startedAtMillis: 1000,
        endedAtMillis: 1200,
      },
    ],
    totalScore: score,
    ending: { terminated: true, truncated: false, truncationReason: null },
    rollouts: [],
    error: null,
    startedAtMillis: 1000,
    endedAtMillis: 1500,
    ...more,
  }
}
