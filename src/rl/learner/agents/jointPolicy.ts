/** Joins separate policies to one policy for whole games, in which each chooses the actions of its agents. */
import { Effect } from "effect"
import { BackendError, type Program } from "../../../tensor/backend/Backend.ts"
import type { Policy } from "../Learner.ts"
import { copy } from "../rollout/Rollout.ts"
import type { Seat } from "./seats.ts"

/** A policy with the rows of its agents in a batch. */
export interface Seated extends Seat {
  readonly policy: Policy
}

/**
 * Makes the policy of a batch in which each of the policies in `seated` has some rows. Its program runs theirs one
 * after another.
 */
export const jointPolicy = (name: string, seated: readonly [Seated, ...ReadonlyArray<Seated>]): Policy => {
  const [{ rows, policy: first }] = seated
  const numEnvs = seated.reduce((sum, one) => sum + one.rows.length, 0)
  const size = first.observations.length / rows.length
  const actionSize = first.actions.length / rows.length
  const noiseSizeOf = ({ rows, policy }: Seated): number => (policy.noise?.length ?? 0) / rows.length
  const noiseSize = Math.max(...seated.map(noiseSizeOf))
  const observations = new Float32Array(numEnvs * size)
  const noise = noiseSize === 0 ? undefined : new Float32Array(numEnvs * noiseSize)
  const length = numEnvs * actionSize
  const actions = first.actions instanceof Int32Array ? new Int32Array(length) : new Float32Array(length)

  const scatter = (): void => {
    for (const one of seated) {
      const { rows, policy } = one
      const ownSize = noiseSizeOf(one)
      for (let index = 0; index < rows.length; index++) {
        copy(observations, rows[index] * size, policy.observations, index * size, size)
        if (noise !== undefined && policy.noise !== undefined)
          copy(noise, rows[index] * noiseSize, policy.noise, index * ownSize, ownSize)
      }
    }
  }
  const gather = (): void => {
    for (const { rows, policy } of seated) {
      for (let index = 0; index < rows.length; index++)
        copy(policy.actions, index * actionSize, actions, rows[index] * actionSize, actionSize)
    }
  }

  const device = [...new Set(seated.map(({ policy }) => policy.program.device))].join(", ")
  const runs = seated.flatMap(({ policy }) => policy.program.runSync ?? [])
  const refuse = (state: string) => {
    const message = `${name}: separate policies have programs of their own, so there is no state "${state}" of all`
    return Effect.fail(new BackendError({ backend: device, program: name, message }))
  }
  const program: Program = {
    name,
    device,
    feeds: { observations, ...(noise === undefined ? {} : { noise }) },
    results: { actions },
    iterations: () => 1,
    run: Effect.gen(function* () {
      scatter()
      for (const { policy } of seated) yield* policy.program.run
      gather()
    }),
    ...(runs.length < seated.length
      ? {}
      : {
          runSync: () => {
            scatter()
            for (const run of runs) run()
            gather()
          },
        }),
    read: refuse,
    write: refuse,
  }
  return {
    observations,
    noise,
    program,
    actions,
    refresh: Effect.forEach(seated, ({ policy }) => policy.refresh, { discard: true }),
  }
}
