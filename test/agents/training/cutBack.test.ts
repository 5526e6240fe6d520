import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { tensorBoard } from "../../../src/run/record/tensorBoard.ts"
import { folderOf, history, type Input, runIn, tasks } from "./support.ts"

const input: Input = {
  agent: history,
  train: tasks(6),
  validation: tasks(2),
  seed: 3,
  runtime: { validationFreq: 2, checkpointEveryEpisodes: 2, checkpointKeepLast: 5 },
  output: { saveMemoryEvery: 2, saveRollouts: true },
}

type Files = Map<string, Uint8Array>

const sinks = [tensorBoard]

const resume = (files: Files, changes: Partial<Input> = {}) =>
  runIn({ files, resume: folderOf(files), sinks }, { ...input, ...changes }).effect

const finished = Effect.suspend(() => {
  const { effect, files } = runIn({ sinks }, input)
  return Effect.map(effect, (result) => ({ result, files }))
})

/** Killed after its second checkpoint. */
const killed = Effect.map(
  finished,
  ({ files, result }) =>
    [
      new Map(
        [...files].filter(([path]) => !/\/(ep_000006\/.*|return\.json|metrics\.json|latest(\.json)?)$/.test(path)),
      ),
      result,
    ] as const,
)

const change = (files: Files, path: string, edit: (text: string) => string): void => {
  const key = `${folderOf(files)}/${path}`
  const before = new TextDecoder().decode(files.get(key))
  assert.notStrictEqual(edit(before), before, path)
  files.set(key, new TextEncoder().encode(edit(before)))
}

describe("a run of agents that talk is not resumed", () => {
  const edits: ReadonlyArray<readonly [path: string, edit: (text: string) => string]> = [
    ["scores/train/scores.jsonl", (text) => text.replace(/"score":\d/, '"score":7')],
    ["scores/val/2_seen_episodes_scores.jsonl", (text) => text.replace(/"score":\d/, '"score":7')],
    ["rollouts/train/rollouts.jsonl", (text) => text.replace("name", "mane")],
    ["memories/memory_2.jsonl", (text) => text.replace("name", "mane")],
  ]
  for (const [path, edit] of edits) {
    it.effect(`beside a file that was changed since: ${path}`, () =>
      Effect.gen(function* () {
        const [files] = yield* killed
        change(files, path, edit)
        const { message } = yield* Effect.flip(resume(files))
        assert.match(
          message,
          new RegExp(`/${path}: its first \\d+ bytes were changed since the checkpoint ep_000004; `),
        )
      }),
    )
  }

  it.effect("beside scores that are too short, and the older checkpoint that fits is named, and fits", () =>
    Effect.gen(function* () {
      const [files, whole] = yield* killed
      const line = /.*"episode_index":4,.*\n/
      change(files, "scores/train/scores.jsonl", (text) => text.slice(0, text.search(line)))
      const { message } = yield* Effect.flip(resume(files))
      const newer = `${folderOf(files)}/checkpoints/ep_000004`
      assert.include(
        message,
        `to resume from the checkpoint ep_000002, which still matches, remove ${newer} and resume again`,
      )
      for (const path of files.keys()) if (path.startsWith(`${newer}/`)) files.delete(path)
      assert.strictEqual((yield* resume(files)).digest, whole.digest)
    }),
  )
})

describe("a run of agents that talk", () => {
  it.effect("is resumed without its logs and its calls, and with samples that were made meanwhile", () =>
    Effect.gen(function* () {
      const [files, whole] = yield* killed
      const folder = folderOf(files)
      files.delete(`${folder}/logs.tfevents`)
      files.delete(`${folder}/run.log`)
      for (const path of files.keys()) if (path.includes("/llm_calls/")) files.delete(path)
      files.set(`${folder}/rollouts/train/samples.jsonl`, new Uint8Array(3))
      assert.strictEqual((yield* resume(files)).digest, whole.digest)
      const log = new TextDecoder().decode(files.get(`${folder}/run.log`))
      assert.match(
        log,
        /warning: .*\/logs\.tfevents: expected at least \d+ bytes, found 0 since the checkpoint ep_000004/,
      )
      assert.isTrue(files.has(`${folder}/rollouts/train/samples.jsonl`))
    }),
  )

  it.effect("that is finished is left as it is, to the byte, and gives its result again", () =>
    Effect.gen(function* () {
      const { files, result } = yield* finished
      const before = structuredClone(files)
      assert.deepEqual(yield* resume(files), result)
      assert.deepEqual(files, before)
    }),
  )

  it.effect("that is finished goes on with more tasks, as if it had had them from the start", () =>
    Effect.gen(function* () {
      const more = { ...input, train: tasks(9) }
      const short = { ...more, runtime: { ...input.runtime, maxEnvsToVisit: 6 } }
      const first = runIn({ sinks }, short)
      yield* first.effect
      const straight = runIn({ sinks }, more)
      const { digest } = yield* straight.effect
      assert.strictEqual(
        (yield* runIn({ files: first.files, resume: folderOf(first.files), sinks }, more).effect).digest,
        digest,
      )
      const memories = (files: Files) => [...files.keys()].filter((path) => path.includes("/memories/"))
      assert.deepEqual(memories(first.files), memories(straight.files))
    }),
  )
})
