import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fromConfig } from "../../../src/rl/env/fromConfig.ts"
import { ForeignEnvs } from "../../../src/rl/env/foreign/options.ts"
import { unstartedEnvs } from "../../../src/rl/env/foreign/unstarted.ts"
import { commonVariables, environmentOf } from "../../../src/base/trust/environment.ts"
import {
  allowAll,
  allowGiven,
  onlyKnown,
  permit,
  refuseAll,
  Trust,
  type TrustRequest,
  type TrustService,
} from "../../../src/base/trust/Trust.ts"

const start = (word: string): TrustRequest => ({
  _tag: "ProgramStart",
  place: "conf.yaml: env.command",
  command: ["run", word],
  variables: [],
  input: null,
})

/** Tells whether a service permits a request. */
const permits = (trust: TrustService, request: TrustRequest, arrives = false) => {
  const asked = Effect.as(permit(request), true)
  return (arrives ? onlyKnown(asked) : asked).pipe(
    Effect.catchTag("Untrusted", () => Effect.succeed(false)),
    Effect.provideService(Trust, trust),
  )
}

describe("trust in configs", () => {
  it.effect(
    "is given by default to those that the program passes, and to one that arrives only if it asks for the same",
    () =>
      Effect.gen(function* () {
        const trust = allowGiven()
        assert.isFalse(yield* permits(trust, start("a"), true))
        assert.isTrue(yield* permits(trust, start("a")))
        assert.isTrue(yield* permits(trust, { ...start("a"), place: "run_x/orch.yaml: env.command" }, true))
        assert.isFalse(yield* permits(trust, start("b"), true))
      }),
  )

  it.effect("is given to all by allowAll, and to none by refuseAll", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* permits(allowAll, start("a"), true))
      assert.isFalse(yield* permits(refuseAll, start("a")))
      assert.isFalse(yield* permits(refuseAll, start("a"), true))
    }),
  )

  it.effect("is asked for by an env of another program, also inside a wrapper, before the program starts", () =>
    Effect.gen(function* () {
      const asked: Array<TrustRequest> = []
      const refusing: TrustService = {
        ...refuseAll,
        permit: (request) => {
          asked.push(request)
          return refuseAll.permit(request)
        },
      }
      const env = { name: "ForeignEnv", id: "x", command: ["./x", "--fast"], options: { size: 3 }, processes: 7 }
      for (const config of [env, { name: "ScaleReward", factor: 2, env }]) {
        const { message } = yield* fromConfig(config, { source: "conf.yaml" }).pipe(
          Effect.provideService(Trust, refusing),
          Effect.flip,
        )
        assert.match(message, /^conf\.yaml: (env\.)?command: this would start \["\.\/x","--fast"\]/)
      }
      const gymnasium = { name: "Gymnasium", id: "evil:Env", python: ".venv/bin/python" }
      yield* fromConfig(gymnasium, { source: "conf.yaml" }).pipe(Effect.provideService(Trust, refusing), Effect.flip)
      assert.deepStrictEqual(
        asked.map((request) => (request._tag === "ProgramStart" ? [request.command, request.input] : [])),
        [
          [["./x", "--fast"], { id: "x", options: { size: 3 } }],
          [["./x", "--fast"], { id: "x", options: { size: 3 } }],
          [
            [".venv/bin/python", "effect_rl_env.py"],
            { id: "evil:Env", options: {}, wrappers: [], action_masks: true, game_scores: false },
          ],
        ],
      )
    }),
  )

  it.effect("leaves an env as it is, and the name of its program in the config, where nothing may start", () =>
    Effect.gen(function* () {
      const env = yield* fromConfig({ name: "ForeignEnv", id: "x", command: ["./x"] }, { source: "conf.yaml" }).pipe(
        Effect.provideService(ForeignEnvs, unstartedEnvs),
      )
      assert.strictEqual(env.id, "x")
    }),
  )
})

describe("the environment of a program", () => {
  const values: Readonly<Record<string, string>> = {
    PATH: "/bin",
    HOME: "/home/ada",
    OPENAI_API_KEY: "secret",
    MUJOCO_GL: "egl",
  }
  const lookup = (name: string): string | undefined => values[name]

  it("has what says where things are, and what the config names, but no other secret", () => {
    assert.deepStrictEqual(environmentOf([], lookup), { env: { PATH: "/bin", HOME: "/home/ada" } })
    assert.deepStrictEqual(environmentOf(["MUJOCO_GL"], lookup), {
      env: { PATH: "/bin", HOME: "/home/ada", MUJOCO_GL: "egl" },
    })
  })

  it("is refused without a variable that the config names", () =>
    assert.deepStrictEqual(environmentOf(["MISSING"], lookup), { missing: "MISSING" }))

  it("names no variable in common that usually holds a key", () =>
    assert.deepStrictEqual(
      commonVariables.filter((name) => /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH/.test(name)),
      [],
    ))
})
