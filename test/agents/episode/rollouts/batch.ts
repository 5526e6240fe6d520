/** A batch to be played, stopped, and gone on with, by tests and by the process that they kill. */
import { Effect, FileSystem } from "effect"
import type { Agent } from "../../../../src/agents/agent/Agent.ts"
import * as TaskSet from "../../../../src/agents/task/TaskSet.ts"
import type { EpisodeFailure, Protocol } from "../../../../src/agents/episode/Protocol.ts"
import { ProtocolError } from "../../../../src/agents/episode/ProtocolError.ts"
import * as RolloutEngine from "../../../../src/agents/episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../../../../src/agents/episode/rollouts/RolloutRequest.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { CallContext } from "../../../../src/agents/lm/Lm.ts"
import { counting, scripted } from "../support.ts"

/** Envs whose chance is seen, of one to three steps. */
export const tasksOf = (size: number): TaskSet.TaskSet =>
  TaskSet.of(
    "counts",
    Array.from({ length: size }, (_, at) =>
      counting(1 + (at % 3), {
        id: `count-${at}`,
        begin: (random) => ({ state: 0, observation: `count from ${random.integer(1_000_000)}` }),
      }),
    ),
  )

/** Says what it sees, after a wait that depends on the episode. */
export const parrot = (wait: (episode: number) => Effect.Effect<unknown> = () => Effect.void): Agent =>
  scripted((_, shown) => ({ act: shown._tag === "Observation" ? shown.text : "" }), {
    before: Effect.flatMap(CallContext, ({ episode }) => wait(episode)),
  })

/** A protocol whose episodes fail `times` times before they succeed. */
export const failing = (
  inner: Protocol,
  times: (episode: number) => number,
  error: (rollout: string) => EpisodeFailure = (rollout) =>
    new ProtocolError({ protocol: "SingleAgent", rollout, message: `${rollout} can't be played` }),
): Protocol => {
  const failed = new Map<string, number>()
  return {
    name: inner.name,
    play: (episode) =>
      Effect.flatMap(CallContext, (context) => {
        const before = failed.get(episode.id) ?? 0
        if (before >= times(context.episode)) return inner.play(episode)
        failed.set(episode.id, before + 1)
        return Effect.fail(error(episode.id))
      }),
  }
}

export const batchOf = (size: number, about: Partial<RolloutEngine.RolloutBatch> = {}): RolloutEngine.RolloutBatch => {
  const tasks = tasksOf(size)
  return {
    tasks,
    requests: RolloutRequest.expand(RolloutRequest.forTasks(tasks, { seed: 1, tags: { split: "train" } }), 2),
    protocol: SingleAgent.make(parrot()),
    concurrency: 4,
    ...about,
  }
}

export const newPath = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return `${yield* fs.makeTempDirectoryScoped()}/outcomes.jsonl`
})
export const textOf = (path: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(path))

/** Returns the text that an undisturbed batch writes. */
export const written = (batch: RolloutEngine.RolloutBatch) =>
  Effect.gen(function* () {
    const path = yield* newPath
    yield* RolloutEngine.write(batch, path)
    return yield* textOf(path)
  }).pipe(Effect.scoped)

/** Lets others go first, so many times. */
export const yields = (times: number) => Effect.repeat(Effect.yieldNow, { times })
