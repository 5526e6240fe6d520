import { Effect, FileSystem, Path } from "effect"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import type { Feedback } from "../../../src/agents/task/Feedback.ts"
import type { TextEnv } from "../../../src/agents/task/TextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { disk } from "../../run/store/disk.ts"

export type Files = Readonly<Record<string, string | Uint8Array>>

/** Something done in a folder of its own with files in it. */
export const withFiles = <A, E>(
  files: Files,
  use: (baseDir: string) => Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>,
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* Effect.orDie(fs.makeTempDirectoryScoped())
    for (const [name, content] of Object.entries(files)) {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content
      yield* Effect.orDie(fs.writeFile(path.join(folder, name), bytes))
    }
    return yield* use(folder)
  }).pipe(Effect.scoped, Effect.provide(disk))

/** The data set that a config describes, opened beside some files. */
export const opened = (said: unknown, files: Files = {}) =>
  withFiles(files, (baseDir) => Datasets.open(said, { baseDir, from: { source: "conf.yaml" } }))

/** All tasks of the data set that a config describes. */
export const tasksOf = (said: unknown, files: Files = {}) =>
  withFiles(files, (baseDir) =>
    Effect.gen(function* () {
      const { tasks } = yield* Datasets.open(said, { baseDir, from: { source: "conf.yaml" } })
      return yield* Effect.forEach(Array.from({ length: tasks.size }).keys(), tasks.at)
    }),
  )

/** Returns the question of each task. */
export const questionsOf = (said: unknown, files: Files = {}) =>
  Effect.flatMap(tasksOf(said, files), (envs) =>
    Effect.forEach(envs, (env) => Effect.map(answered(env, ""), ({ question }) => question)),
  )

/** Returns the error of opening or reading the whole data set. */
export const problem = (said: unknown, files: Files = {}): Effect.Effect<string> =>
  opened(said, files).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
    Effect.orDie,
  )

/** Returns the first observation of an episode, and the feedback on one answer. */
export const answered = (env: TextEnv, answer: string) =>
  Effect.gen(function* () {
    const episode = yield* env.begin(stream(1, env.id))
    const { feedback, terminated, observation } = yield* episode.step(answer)
    return { question: episode.observation, feedback, terminated, observation }
  }).pipe(Effect.scoped)

/** The scores of answers to the task of a config with one item. */
export const scoresOf = (said: object, item: object, ...answers: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { tasks } = yield* opened({ ...said, items: [item] })
    const env = yield* tasks.at(0)
    return yield* Effect.forEach(answers, (answer) =>
      Effect.map(answered(env, answer), ({ feedback }): Feedback["score"] => feedback.score),
    )
  })

export const lines = (records: ReadonlyArray<unknown>): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("")
