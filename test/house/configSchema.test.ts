import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { fromData, names, schemaOf } from "../../src/rl/algorithms/registry.ts"
import { decode, isPlain, type Plain, snakeCase, toCamelCase, toSnakeCase } from "../../src/base/config/Config.ts"
import { Settings } from "../../src/rl/train/Settings.ts"
import { TrainerConfig } from "../../src/rl/train/TrainerConfig.ts"
import { validator } from "./validators.ts"

describe("schemas/config.schema.json", () => {
  it("takes every key of a training's config that the library takes, however it is spelled", async () => {
    const problem = validator("config.schema.json")
    const spellings = [snakeCase, (key: string) => key, (key: string) => `${snakeCase(key)}_`]
    const parts: ReadonlyArray<
      readonly [of: string, schema: Schema.Codec<Plain, Plain>, whole: (part: Plain) => Plain]
    > = [
      ...[...names, ...Object.keys(fromData)].map((name) => {
        const schema = schemaOf(name)
        return [name, schema, (part: Plain) => ({ env: "CartPole-v1", algorithm: { name, ...part } })] as const
      }),
      ["trainer", TrainerConfig, (trainer) => ({ env: "CartPole-v1", algorithm: "ppo", trainer })],
      ["settings", Settings, (settings) => ({ ...settings, env: "CartPole-v1", algorithm: "ppo" })],
    ]
    for (const [of, schema, whole] of parts) {
      const base = of === "settings" ? { env: "", algorithm: {}, totalSteps: 1 } : {}
      const defaults = Schema.decodeUnknownSync(schema)(base)
      const own = Object.entries(defaults).filter(([key]) => key !== "env" && key !== "algorithm")
      assert.isAbove(own.length, 4)
      for (const spell of spellings) {
        const part = Object.fromEntries(own.map(([key, value]) => [spell(key), toSnakeCase(value)]))
        assert.isUndefined(problem(whole(part)), `${of}: ${Object.keys(part).join(", ")}`)
        const read = toCamelCase(part)
        await Effect.runPromise(decode(schema, { ...base, ...(isPlain(read) ? read : {}) }, { source: of }))
      }
      assert.isDefined(problem(whole({ learningrate_of_nothing: 1 })), of)
    }
  })
})
