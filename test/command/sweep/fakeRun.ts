import { assert } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Child, RunCommand } from "../../../src/command/sweep/child.ts"
import type { Handler } from "../../../src/spread/cluster/Dispatcher.ts"
import { toSnakeCase } from "../../../src/base/config/Config.ts"
import { prettyJson } from "../../../src/base/text/text.ts"

const result = {
  steps: 8,
  episodes: 1,
  meanScore: null,
  meanReturn: null,
  validation: null,
  failedValidations: 0,
  digest: "d".repeat(64),
  wallSeconds: 1,
  stepsPerSecond: 8,
}

/** Stands for `effect run`: writes a run of three files at `path` of its results folder, and prints its result. */
export const trainerOf =
  (path: string) =>
  ({ args }: Child): string => {
    const runDir = join(args[args.indexOf("--results-dir") + 1], path)
    mkdirSync(runDir, { recursive: true })
    writeFileSync(join(runDir, "config.yaml"), "kind: training\n")
    writeFileSync(join(runDir, "metrics.json"), prettyJson(toSnakeCase({ runDir, ...result })))
    writeFileSync(join(runDir, "return.json"), "[]")
    return JSON.stringify({ runDir, ...result })
  }

/** Lets two workers do a job of a sweep, which both train at the same time. Checks that both have one answer, and returns it. */
export const doneTwice = Effect.fnUntraced(function* (
  handler: Handler,
  payload: object,
  train: (child: Child) => string,
) {
  const bothTrain = yield* Deferred.make<void>()
  let trained = 0
  const command = (child: Child) =>
    Effect.gen(function* () {
      if (++trained === 2) yield* Deferred.succeed(bothTrain, undefined)
      yield* Deferred.await(bothTrain)
      return train(child)
    })
  const worker = Effect.provideService(handler.perform(payload), RunCommand, command)
  const [one, other] = yield* Effect.all([worker, worker], { concurrency: "unbounded" })
  assert.strictEqual(trained, 2)
  assert.strictEqual(one._tag, "Done", JSON.stringify(one))
  assert.deepStrictEqual(other, one)
  return one
})
