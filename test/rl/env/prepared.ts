import { Effect } from "effect"
import { beforeAll } from "vitest"
import type { Env } from "../../../src/rl/env/Env.ts"

/** Loads what the functions of these envs need, before the tests of a file. */
export const prepared = (envs: ReadonlyArray<Env>): void =>
  beforeAll(() => Effect.runPromise(Effect.forEach(envs, ({ prepare = Effect.void }) => prepare, { discard: true })))
