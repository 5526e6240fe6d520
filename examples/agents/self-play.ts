// Tic-tac-toe in words with one agent as both players: each game gives a rollout for X and one for O, and training
// samples in which every move is credited with the result of the game for its player.
//   npx node examples/agents/self-play.ts [DIRECTORY]
import { NodeFileSystem } from "@effect/platform-node"
import {
  Credit,
  Lm,
  MemorylessAgent,
  MultiAgentSync,
  Rng,
  Rollouts,
  Samples,
  Scripted,
  seeded,
  TextTicTacToe,
} from "effect-rl"
import { Effect, FileSystem, Layer } from "effect"

const directory = process.argv[2] ?? "results/self-play"
const games = 20

/** A model that takes any free place; its chance is the request's seed, so every run is the same. */
const player = Scripted.layer(({ messages, seed }) =>
  TextTicTacToe.random(messages.at(-1)?.content ?? "", Rng.stream(seed ?? 0)),
)
const models = Lm.middleware(seeded).pipe(Layer.provide(player))

const example = Effect.gen(function* () {
  const agent = yield* MemorylessAgent.make({ model: "player", traceTokens: true })
  const protocol = MultiAgentSync.make(agent)
  const played = yield* Effect.forEach(
    Array.from({ length: games }, (_, game) => game),
    (game) => protocol.play({ id: `game-${game}`, env: TextTicTacToe.players, envSeed: game, samplingSeed: game }),
    { concurrency: 8 },
  )
  const rollouts = played.flat()
  const samples = yield* Samples.of(rollouts, { credit: Credit.toGo(Credit.own, { discount: 0.9 }) })

  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(directory, { recursive: true })
  yield* fs.writeFileString(`${directory}/rollouts.jsonl`, rollouts.map(Rollouts.line).join(""))
  yield* fs.writeFileString(`${directory}/samples.jsonl`, samples.map(Samples.line).join(""))

  const wins = (name: string): number =>
    rollouts.filter(({ meta, totalReward }) => meta.player === name && totalReward === 1).length
  const draws = games - wins("X") - wins("O")
  return `${games} games: X won ${wins("X")}, O won ${wins("O")}, ${draws} drawn; ${samples.length} moves to learn from`
})

const line = await Effect.runPromise(
  example.pipe(Effect.scoped, Effect.provide(models), Effect.provide(NodeFileSystem.layer)),
)
console.log(`${line}\n${directory}/samples.jsonl`)
