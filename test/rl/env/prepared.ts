import { Effect, Scope } from "effect"
import { beforeAll } from "vitest"
import type { Env } from "../../../src/rl/env/Env.ts"

/** Loads what the functions of these envs need, before the tests of a file. */
export const prepared = (envs: ReadonlyArray<Env>): void =>
  beforeAll(() => {
    const scope = Scope.makeUnsafe()
    const all = Effect.forEach(envs, ({ prepare = Effect.void }) => prepare, { discard: true })
    return Effect.runPromise(Scope.provide(all, scope))
  })
