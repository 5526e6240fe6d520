import { assert, describe, it } from "vitest"
import { sentTraining } from "../../../src/run/RunOptions.ts"

describe("a training that is sent to other machines", () => {
  it("has no API keys among its settings, only the names of their variables", () => {
    const program = [{ path: "agent.ts", sha256: "0" }] as const
    const secret = "sk-very-secret"
    const sent = sentTraining({
      program,
      name: "agent",
      source: "agent.ts",
      overrides: [
        { path: "seed", value: 3, source: "--seed" },
        { path: "agent.lm_config.api_key", value: secret, source: "--set" },
        { path: "agent.lmConfig.apiKey", value: "${MY_KEY}", source: "--set" },
        { path: "agent.judges", value: [{ model: "m", api_key: secret, max_retries: 2 }], source: "--set" },
      ],
    })
    assert.notInclude(JSON.stringify(sent), secret)
    assert.deepStrictEqual(sent?._tag === "Program" ? sent.overrides : [], [
      { path: "seed", value: 3, source: "--seed" },
      { path: "agent.lmConfig.apiKey", value: "${MY_KEY}", source: "--set" },
      { path: "agent.judges", value: [{ model: "m", max_retries: 2 }], source: "--set" },
    ])
  })
})
