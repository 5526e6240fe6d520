// A language model learns from rewards alone to find the way out of a maze that is described in words. Rollouts become
// samples, moves that led to the exit get a weight, and the model takes a gradient step. The model is a small built-in
// one, so this takes seconds and no API key. The folder keeps the last round's samples, on which a larger model could be
// trained elsewhere, and the trained model, which a YAML file can name: `model: builtin:results/learning-lm/model.json`.
//   npx node examples/agents/learning-lm.ts [DIRECTORY]
import { NodeFileSystem } from "@effect/platform-node"
import {
  Credit,
  Lm,
  MemorylessAgent,
  Ngram,
  Rng,
  RolloutEngine,
  RolloutRequest,
  Samples,
  seeded,
  SingleAgent,
  TaskSet,
  TextMaze,
} from "effect-rl"
import { Console, Effect, FileSystem, Stream } from "effect"

const directory = process.argv[2] ?? "results/learning-lm"
const rounds = 24
const episodes = 32

const maze = TextMaze.drawn(3, Rng.stream(1, "maze"))
const tasks = TaskSet.of("maze", [TextMaze.make({ id: "maze", maze })])
const model = Ngram.make({ answers: ["north", "east", "south", "west"] })

const played = Effect.fn(function* (name: string, seed: number, temperature: number, times: number) {
  const agent = yield* MemorylessAgent.make({ model: "ngram", temperature, traceTokens: true })
  const requests = RolloutRequest.expand(RolloutRequest.forTasks(tasks, { seed, name }), times)
  const outcomes = yield* Stream.runCollect(
    RolloutEngine.stream({ requests, tasks, protocol: SingleAgent.make(agent), concurrency: 8 }),
  )
  return outcomes.flatMap(({ rollouts }) => rollouts)
})

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

const round = Effect.fn(function* (at: number) {
  const rollouts = yield* played(`round-${at}`, at, 1, episodes)
  // With this discount the moves just before the exit get most of its reward, so short ways win.
  const samples = yield* Samples.of(rollouts, { credit: Credit.toGo(Credit.own, { discount: 0.8 }) })
  const loss = -model.learn(
    samples.map((sample) => ({ ...sample, weight: sample.credit })),
    { learningRate: 0.2 },
  )
  const figures = [
    at.toFixed(0).padStart(5),
    mean(rollouts.map(({ totalReward }) => totalReward)).toFixed(2),
    mean(rollouts.map(({ length }) => length)).toFixed(1),
    loss.toFixed(3),
  ]
  if (at === 1 || at % 4 === 0) yield* Console.log(figures.join("   "))
  return samples
})

const example = Effect.gen(function* () {
  yield* Console.log("round   score  steps  loss")
  let samples: ReadonlyArray<Samples.Sample> = []
  for (let at = 1; at <= rounds; at++) samples = yield* round(at)
  const [best] = yield* played("learnt", 0, 0, 1)
  const way = best.steps.flatMap((step) => (step._tag === "EnvironmentStep" ? [step.action] : []))
  yield* Console.log(
    `What it learnt: ${way.join(", ")}. No way is shorter than ${TextMaze.wayOut(maze, maze.start).length} steps.`,
  )

  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(directory, { recursive: true })
  yield* fs.writeFileString(`${directory}/samples.jsonl`, samples.map(Samples.line).join(""))
  yield* fs.writeFileString(`${directory}/model.json`, JSON.stringify(model.snapshot()))
  yield* Console.log(`${directory}/samples.jsonl\n${directory}/model.json`)
})

await Effect.runPromise(example.pipe(Effect.provideService(Lm, seeded(model.lm)), Effect.provide(NodeFileSystem.layer)))
